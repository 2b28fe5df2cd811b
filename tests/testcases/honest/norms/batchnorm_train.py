import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = nn.BatchNorm2d(12)

    def forward(self, x):
        return self.n(x)


def get_inputs():
    return [torch.randn(16, 12, 8, 8)]


def get_init_inputs():
    return []
