import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, w):
        return x @ w


def get_inputs():
    return [torch.randn(32, 2048).bfloat16(), torch.randn(2048, 256).bfloat16()]


def get_init_inputs():
    return []
