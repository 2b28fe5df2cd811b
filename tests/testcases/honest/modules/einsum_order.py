import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, w, z):
        return torch.einsum('bik,kj,bjl->bil', x, w, z)


def get_inputs():
    return [torch.randn(4, 10, 12), torch.randn(12, 14), torch.randn(4, 14, 6)]


def get_init_inputs():
    return []
