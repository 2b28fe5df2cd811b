import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, p, g, m, v):
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        return p - 1e-3 * (m / (1 - 0.9 ** 10)) / ((v / (1 - 0.999 ** 10)).sqrt() + 1e-8), m, v


def get_inputs():
    return [torch.randn(5000), torch.randn(5000), torch.randn(5000) * 0.1, torch.rand(5000) * 0.01]


def get_init_inputs():
    return []
