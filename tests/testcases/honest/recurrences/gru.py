import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.g = nn.GRU(10, 8)

    def forward(self, x):
        return self.g(x)[0]


def get_inputs():
    return [torch.randn(12, 6, 10)]


def get_init_inputs():
    return []
