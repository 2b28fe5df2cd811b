import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """Rounded before weight and bias."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(300).bfloat16()

    def forward(self, x):
        y = x.float() - x.float().mean(-1, keepdim=True)
        y = (y * torch.rsqrt((y * y).mean(-1, keepdim=True) + 1e-5)).bfloat16()
        return y * self.norm.weight + self.norm.bias
