"""Adds two softplus, each by logaddexp with zero."""
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.register_buffer("positive", torch.rand(classes) * 3 + 1)

    def forward(self, x, t):
        zero = torch.zeros((), device=x.device)
        low = torch.logaddexp(zero, -x)
        return (self.positive * t * low + (1 - t) * (low + x)).sum(1) / x.shape[1]
