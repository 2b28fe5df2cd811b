import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, w):
        return (x @ w).t()


def get_inputs():
    return [torch.randn(30, 20), torch.randn(20, 10)]


def get_init_inputs():
    return []
