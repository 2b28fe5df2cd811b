import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x.var(1)


def get_inputs():
    return [torch.randn(20, 300, dtype=torch.float64)]


def get_init_inputs():
    return []
