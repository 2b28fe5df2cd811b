import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(768, 512).bfloat16()

    def forward(self, x):
        return F.gelu(self.linear(x))


def get_inputs():
    return [torch.randn(64, 768).bfloat16()]


def get_init_inputs():
    return []
