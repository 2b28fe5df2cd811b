import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a):
        return a @ a.conj().t()


def get_inputs():
    return [torch.randn(30, 40, dtype=torch.complex64)]


def get_init_inputs():
    return []
