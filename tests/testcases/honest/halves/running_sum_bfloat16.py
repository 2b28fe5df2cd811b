import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter((torch.randn(2048, 256) / 45).bfloat16())

    def forward(self, x):
        return x @ self.w


def get_inputs():
    return [torch.randn(32, 2048).bfloat16()]


def get_init_inputs():
    return []
