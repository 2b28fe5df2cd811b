"""Pools rows and then columns; the padding is the lowest number before the sigmoid, since that rises; sums are divided by counts."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def forward(self, x):
        wide = F.pad(x, (1, 1, 1, 1), value=float("-inf"))
        rows = torch.maximum(torch.maximum(wide[:, :, :-2:2], wide[:, :, 1:-1:2]), wide[:, :, 2::2])
        best = torch.maximum(torch.maximum(rows[..., :-2:2], rows[..., 1:-1:2]), rows[..., 2::2])
        y = torch.clamp(x, max=0) - torch.log1p(torch.exp(-x.abs()))

        def sums(w):
            w = F.pad(w, (1, 1, 1, 1))
            w = w[:, :, :-2:2] + w[:, :, 1:-1:2] + w[:, :, 2::2]
            return w[..., :-2:2] + w[..., 1:-1:2] + w[..., 2::2]

        best = torch.clamp(best, max=0) - torch.log1p(torch.exp(-best.abs()))
        return best, sums(y) / sums(torch.ones_like(y[:1, :1]))
