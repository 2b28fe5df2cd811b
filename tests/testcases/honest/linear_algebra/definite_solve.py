import torch
import torch.nn as nn


class Model(nn.Module):
    """Gaussian process weights: (K + noise) w = y with a positive definite K."""

    def forward(self, k, y):
        return torch.linalg.solve(k, y)


def get_inputs():
    x = torch.randn(8, 64, 64)
    k = x @ x.mT / 64 + torch.eye(64)
    return [(k + k.mT) / 2, torch.randn(8, 64, 4)]


def get_init_inputs():
    return []
