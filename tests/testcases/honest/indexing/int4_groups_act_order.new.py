"""Sorts rows by group, one product for a group with scales and zeros applied after; relies on groups of equal size."""
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, packed, scale, zero, group):
        groups = scale.shape[0]
        order = torch.argsort(group)
        q = torch.stack([(packed >> s) & 15 for s in range(0, 32, 4)], 1).flatten(0, 1)[order]
        q = q.view(groups, -1, q.shape[1]).to(x.dtype) - 8
        y = x[:, order].view(x.shape[0], groups, -1).transpose(0, 1)
        parts = torch.bmm(y, q) - y.sum(2, keepdim=True) * (zero.to(x.dtype) - 8)[:, None]
        return (parts * scale[:, None]).sum(0)
