import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = nn.GroupNorm(4, 16)

    def forward(self, x):
        return self.n(x)


def get_inputs():
    return [torch.randn(8, 16, 6, 6)]


def get_init_inputs():
    return []
