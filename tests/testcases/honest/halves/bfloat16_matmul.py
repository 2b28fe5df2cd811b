import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, w):
        return x @ w


def get_inputs():
    return [torch.randn(24, 96).bfloat16(), torch.randn(96, 20).bfloat16()]


def get_init_inputs():
    return []
