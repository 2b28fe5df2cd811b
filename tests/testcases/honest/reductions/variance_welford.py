import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x.var(dim=1, unbiased=False)


def get_inputs():
    return [5 + 1e-3 * torch.randn(64, 512)]


def get_init_inputs():
    return []
