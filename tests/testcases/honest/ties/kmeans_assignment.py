import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, c):
        return torch.cdist(x, c).argmin(1)


def get_inputs():
    return [torch.randn(500, 6), torch.randn(8, 6)]


def get_init_inputs():
    return []
