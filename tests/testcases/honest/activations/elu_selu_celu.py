"""ELU, SELU and CELU of channels of an image."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x):
        a, b, c = x.chunk(3, 1)
        return torch.cat((F.elu(a, alpha=0.7), F.selu(b), F.celu(c, alpha=1.5)), 1)


def get_inputs():
    return [2 * torch.randn(4, 12, 56, 56)]


def get_init_inputs():
    return []
