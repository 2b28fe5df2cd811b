import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """The long dimension split by sixteen, added up in bfloat16 as atomic operations on the output do."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter((torch.randn(2048, 256) / 45).bfloat16())

    def forward(self, x):
        t = x[:, :128] @ self.w[:128]
        for k in range(128, x.shape[1], 128):
            t = t + x[:, k : k + 128] @ self.w[k : k + 128]
        return t
