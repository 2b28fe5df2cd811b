import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(64, 40)

    def forward(self, x):
        return torch.tanh(self.l(x))


def get_inputs():
    return [torch.randn(32, 64)]


def get_init_inputs():
    return []
