import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, t):
        known = torch.isfinite(t)
        d = torch.where(known, x - torch.where(known, t, torch.zeros_like(t)), torch.zeros_like(x))
        return (d * d).sum(dim=1) / known.sum(dim=1).clamp(min=1)


def get_inputs():
    return [torch.randn(45, 300), torch.randn(45, 300)]


def get_init_inputs():
    return []
