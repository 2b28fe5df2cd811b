"""Sums along the path to the root; parents stand before their children and the root is its own."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, parent):
        rows = [x[0]]
        for i in range(1, x.shape[0]):
            rows.append(rows[int(parent[i])] + x[i])
        return torch.stack(rows)


def get_inputs():
    n = 200
    parent = (torch.rand(n) * torch.arange(n)).long()
    return [torch.randn(n, 16), parent]


def get_init_inputs():
    return []
