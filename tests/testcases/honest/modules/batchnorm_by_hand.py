import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = nn.BatchNorm2d(6)

    def forward(self, x):
        return self.n(x)


def get_inputs():
    return [torch.randn(16, 6, 9, 9)]


def get_init_inputs():
    return []
