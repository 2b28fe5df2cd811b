"""The exact form by erfc, the other as a sigmoid of twice the argument."""
import math

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.up = nn.Linear(width, hidden)

    def forward(self, x):
        y = self.up(0.5 * x * torch.erfc(-x * math.sqrt(0.5)))
        u = 2 * math.sqrt(2 / math.pi) * y * (1 + 0.044715 * y * y)
        return y / (1 + torch.exp(-u))
