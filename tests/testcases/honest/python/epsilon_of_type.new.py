# The same by logarithms, with float32's epsilon as a number.
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, p, y):
        q = p.clamp(2.0**-23, 1 - 2.0**-23)
        one, other = torch.log(q), torch.log1p(-q)
        return torch.where(y > 0, one, other), -(p * one + (1 - p) * other)
