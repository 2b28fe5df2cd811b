import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(300).bfloat16()

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(60, 300).bfloat16()]


def get_init_inputs():
    return []
