import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, t):
        return torch.bincount(t * 6 + x.argmax(1), minlength=36).view(6, 6)


def get_inputs():
    return [torch.randn(400, 6), torch.randint(0, 6, (400,))]


def get_init_inputs():
    return []
