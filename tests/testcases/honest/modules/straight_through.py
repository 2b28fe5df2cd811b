import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x + (torch.round(x * 8) / 8 - x).detach()


def get_inputs():
    return [torch.randn(40, 50)]


def get_init_inputs():
    return []
