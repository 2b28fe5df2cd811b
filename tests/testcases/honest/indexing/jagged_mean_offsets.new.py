"""Finds each value's segment by bisection and multiplies by a one-hot matrix; relies on sorted offsets from 0 to the end."""
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, values, offsets):
        at = torch.arange(values.shape[0], device=values.device)
        segment = torch.searchsorted(offsets, at, right=True) - 1
        mine = (segment[None, :] == torch.arange(offsets.shape[0] - 1, device=values.device)[:, None]).to(values.dtype)
        return (mine @ values) / mine.sum(1, keepdim=True).clamp(min=1)
