import torch
import torch.nn as nn


class Model(nn.Module):
    """Which of nine levels each value has reached; the levels come with the data."""

    def forward(self, x, levels):
        return torch.bucketize(x, levels)


def get_inputs():
    return [torch.rand(256, 256), torch.linspace(0.1, 0.9, 9)]


def get_init_inputs():
    return []
