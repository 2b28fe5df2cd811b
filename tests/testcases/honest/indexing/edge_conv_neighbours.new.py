"""Splits the layer, so that neighbours are multiplied once, and takes the maximum before adding the own part."""
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, width, out):
        super().__init__()
        self.lin = nn.Linear(2 * width, out)

    def forward(self, x, near):
        b, n, width = x.shape
        own, other = self.lin.weight.split(width, 1)
        flat = (x @ other.t()).flatten(0, 1)
        base = (torch.arange(b, device=x.device) * n)[:, None]
        best = flat[near[:, :, 0] + base]
        for k in range(1, near.shape[2]):
            best = torch.maximum(best, flat[near[:, :, k] + base])
        y = best + x @ (own - other).t() + self.lin.bias
        return torch.maximum(y, 0.2 * y)
