import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """Each step is rounded."""

    def forward(self, c, x, w):
        return (x @ w) * 0.3 + c * 0.7
