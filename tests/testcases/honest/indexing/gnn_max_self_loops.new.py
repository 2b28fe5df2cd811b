"""Sorts the edges by target and starts each maximum from the first edge; relies on every node being a target."""
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, source, target):
        n = x.shape[0]
        order = torch.argsort(target)
        source = source[order]
        counts = torch.bincount(target, minlength=n)
        begin = torch.cumsum(counts, 0) - counts
        best = x[source[begin]]
        for k in range(1, int(counts.max())):
            best = torch.maximum(best, x[source[begin + torch.minimum(counts - 1, torch.full_like(counts, k))]])
        return best
