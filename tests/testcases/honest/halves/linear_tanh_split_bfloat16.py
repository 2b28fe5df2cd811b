import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x, w, b):
        y = F.linear(x, w, b)
        return torch.tanh(y), F.hardtanh(y, 0.0, 6.0)


def get_inputs():
    return [torch.randn(96, 512).bfloat16(), (torch.randn(96, 512) / 22).bfloat16(), torch.randn(96).bfloat16()]


def get_init_inputs():
    return []
