import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, b):
        d = (x.unsqueeze(-1) - b).abs()
        return b[d.argmin(-1)]


def get_inputs():
    return [torch.randn(40, 50), torch.sort(torch.randn(16))[0]]


def get_init_inputs():
    return []
