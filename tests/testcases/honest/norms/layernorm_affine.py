import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = nn.LayerNorm(384)

    def forward(self, x):
        return self.n(x)


def get_inputs():
    return [torch.randn(64, 384)]


def get_init_inputs():
    return []
