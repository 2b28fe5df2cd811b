import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a):
        return a.abs(), torch.angle(a)


def get_inputs():
    return [torch.randn(2000, dtype=torch.complex64)]


def get_init_inputs():
    return []
