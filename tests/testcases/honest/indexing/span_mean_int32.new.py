"""A matrix of ones and zeros from the ends; relies on start < end."""
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, start, end):
        at = torch.arange(x.shape[0], device=x.device, dtype=start.dtype)
        inside = ((at >= start[:, None]) & (at < end[:, None])).to(x.dtype)
        return (inside @ x) / (end - start).to(x.dtype)[:, None]
