import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """Minus infinity is added where the mask is."""

    def forward(self, q, k):
        s = (q.float() @ k.float().transpose(-1, -2)).bfloat16()
        return s + torch.full_like(s, float("-inf")).triu(1)
