import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(9, 12, 14))

    def forward(self, x, z):
        return torch.einsum('bi,oij,bj->bo', x, self.w, z)


def get_inputs():
    return [torch.randn(20, 12), torch.randn(20, 14)]


def get_init_inputs():
    return []
