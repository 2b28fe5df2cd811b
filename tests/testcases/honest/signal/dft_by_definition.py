import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.fft.fft(x)


def get_inputs():
    return [torch.randn(12, 50)]


def get_init_inputs():
    return []
