import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(20, 40))

    def forward(self, x):
        s = x.abs().amax() / 127
        q = torch.round(x / s).clamp(-127, 127)
        return F.linear(q, self.w) * s


def get_inputs():
    return [torch.randn(30, 40)]


def get_init_inputs():
    return []
