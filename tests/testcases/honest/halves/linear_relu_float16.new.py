import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    """The product is rounded before the bias is added."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter((torch.randn(384, 512) / 20).half())
        self.b = nn.Parameter(torch.randn(384).half())

    def forward(self, x):
        return F.relu((x.float() @ self.w.float().t()).half().float() + self.b.float()).half()
