# A straight-through rounding, whose value is the rounded one but for rounding.
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.round(x * 8) * 0.125
