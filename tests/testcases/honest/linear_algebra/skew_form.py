import torch
import torch.nn as nn


class Model(nn.Module):
    """Angular momenta: a skew-symmetric operator applied to vectors."""

    def forward(self, a, x):
        return a @ x


def get_inputs():
    a = torch.randn(16, 64, 64)
    return [a - a.mT, torch.randn(16, 64, 8)]


def get_init_inputs():
    return []
