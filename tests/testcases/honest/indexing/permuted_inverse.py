"""Rows are permuted, put through layers and put back by the inverse."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.lin = nn.Linear(width, width)

    def forward(self, x, order, inverse):
        y = self.lin(self.norm(x[order]))
        return x + y[inverse]


def get_inputs():
    order = torch.randperm(160)
    return [torch.randn(160, 32), order, torch.argsort(order)]


def get_init_inputs():
    return [32]
