import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, b):
        return a * b


def get_inputs():
    return [torch.randn(40, 50, dtype=torch.complex64), torch.randn(40, 50, dtype=torch.complex64)]


def get_init_inputs():
    return []
