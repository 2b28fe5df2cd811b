"""RMS norm over the channels of images, written out by hand."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, eps):
        super().__init__()
        self.eps = eps

    def forward(self, x):
        return x / torch.sqrt(torch.mean(x**2, dim=1, keepdim=True) + self.eps)


def get_inputs():
    return [torch.randn(16, 64, 64, 64)]


def get_init_inputs():
    return [1e-5]
