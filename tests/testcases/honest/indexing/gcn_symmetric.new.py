"""Scales rows before and after, sums neighbours in order of sorted edges, and multiplies by the weight last."""
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, width, out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, out) / width**0.5)
        self.bias = nn.Parameter(torch.randn(out))

    def forward(self, x, row, col):
        n = x.shape[0]
        counts = torch.bincount(col.long(), minlength=n)
        scale = torch.rsqrt(1 + counts.to(x.dtype))[:, None]
        y = x * scale
        source = row.long()[torch.sort(col, stable=True)[1]]
        begin = torch.cumsum(counts, 0) - counts
        total = y.clone()
        for k in range(int(counts.max())):
            some = torch.nonzero(counts > k).flatten()
            total[some] += y[source[begin[some] + k]]
        return torch.clamp((total * scale) @ self.weight + self.bias, min=0)
