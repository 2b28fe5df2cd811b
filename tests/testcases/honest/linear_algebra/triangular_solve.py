import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, b):
        return torch.linalg.solve_triangular(torch.tril(a, -1) * 0.2 + torch.eye(24, device=a.device), b, upper=False)


def get_inputs():
    return [torch.randn(4, 24, 24), torch.randn(4, 24, 5)]


def get_init_inputs():
    return []
