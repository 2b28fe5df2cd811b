import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, b, c):
        return (a @ b) @ c


def get_inputs():
    return [torch.randn(60, 8), torch.randn(8, 60), torch.randn(60, 10)]


def get_init_inputs():
    return []
