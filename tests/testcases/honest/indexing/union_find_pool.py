"""Means of components by the labels of union-find; a label is the component's smallest member."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, root):
        total = torch.zeros_like(x).index_add_(0, root, x)
        count = torch.bincount(root, minlength=x.shape[0]).to(x.dtype)
        return x - (total / count.clamp(min=1)[:, None])[root]


def get_inputs():
    n = 1024
    group = torch.randint(0, 40, (n,))
    first = torch.full((40,), n).scatter_reduce(0, group, torch.arange(n), "amin")
    return [torch.randn(n, 64), first[group]]


def get_init_inputs():
    return []
