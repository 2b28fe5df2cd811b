import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, y):
        return torch.bmm(x, y.transpose(1, 2))


def get_inputs():
    return [torch.randn(6, 48, 160).bfloat16(), torch.rand(6, 40, 160).bfloat16()]


def get_init_inputs():
    return []
