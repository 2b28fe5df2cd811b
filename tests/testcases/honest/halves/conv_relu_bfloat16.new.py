import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    """A product of columns, rounded before the bias is added."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(16, 32, 3, padding=1).bfloat16()

    def forward(self, x):
        n, _, h, w = x.shape
        columns = F.unfold(x.float(), 3, padding=1)
        y = self.conv.weight.float().reshape(32, -1) @ columns
        return F.relu(y.bfloat16() + self.conv.bias[:, None]).reshape(n, 32, h, w)
