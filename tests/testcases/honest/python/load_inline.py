import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, slope):
        super().__init__()
        self.slope = slope

    def forward(self, x):
        return nn.functional.leaky_relu(x, self.slope)


def get_inputs():
    return [torch.randn(64, 100)]


def get_init_inputs():
    return [0.1]
