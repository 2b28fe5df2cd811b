import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        s = x.abs().amax(1, keepdim=True) / 127
        return torch.clamp(torch.round(x / s), -128, 127).to(torch.int8), s


def get_inputs():
    return [torch.randn(64, 256)]


def get_init_inputs():
    return []
