import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(256, 256) for _ in range(4)]).bfloat16()

    def forward(self, x):
        for layer in self.layers:
            x = x + F.silu(layer(x))
        return x


def get_inputs():
    return [torch.randn(48, 256).bfloat16()]


def get_init_inputs():
    return []
