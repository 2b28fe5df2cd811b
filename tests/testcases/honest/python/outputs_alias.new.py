# Two outputs that share their memory.
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        y = x * 3
        return y, y[:, :10], y.t()
