import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.argsort(x, dim=1, stable=True) if False else torch.sort(x, dim=1, stable=True)[1]


def get_inputs():
    return [(torch.randn(20, 256) * 4).round() / 8]


def get_init_inputs():
    return []
