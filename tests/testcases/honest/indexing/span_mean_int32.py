"""Means of half-open spans of which none is empty."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, start, end):
        return torch.stack([x[a:b].mean(0) for a, b in zip(start.tolist(), end.tolist())])


def get_inputs():
    start = torch.randint(0, 190, (40,), dtype=torch.int32)
    length = torch.randint(1, 11, (40,), dtype=torch.int32)
    return [torch.randn(200, 32), start, start + length]


def get_init_inputs():
    return []
