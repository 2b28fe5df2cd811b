import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(64, 48)

    def forward(self, x):
        return F.gelu(self.l(x)) * 2


def get_inputs():
    return [torch.randn(32, 64)]


def get_init_inputs():
    return []
