# A block with dropout in evaluation mode, which does nothing.
import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(30, 20)
        self.d = nn.Dropout(0.5)
        self.eval()

    def forward(self, x):
        return F.linear(x, self.l.weight, self.l.bias).clamp(min=0)
