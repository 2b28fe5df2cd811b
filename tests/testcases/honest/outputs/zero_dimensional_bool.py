import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, z):
        return ((x - z).abs() < 10).all()


def get_inputs():
    return [torch.randn(500), torch.randn(500)]


def get_init_inputs():
    return []
