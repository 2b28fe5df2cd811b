"""Logarithms of one plus, a root in place of exponential and logarithm, and logarithms joined."""
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        m = 1 + 4 * x.abs()
        r = 1 - 2 / (torch.exp(2 * x) + 1)
        a = 1 + 0.95 * r
        return torch.copysign(torch.log(m), x), torch.copysign(torch.sqrt(m) - 1, x), 0.5 * torch.log((1 + 0.99 * r) * a * a / (1 - 0.99 * r))
