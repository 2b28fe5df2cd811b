"""The larger of zero and x plus a logarithm of one exponential, without a threshold."""
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.clamp(x, min=0) + 0.5 * torch.log1p(torch.exp(-2 * x.abs()))
        return y * torch.rsqrt(y.square().sum(-1, keepdim=True).clamp(min=1e-12))
