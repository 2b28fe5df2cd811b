"""Multiplies by a matrix of how many edges join each pair, after the linear layer; relies on indices below the number of nodes."""
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, width, out):
        super().__init__()
        self.own = nn.Linear(width, out)
        self.near = nn.Linear(width, out, bias=False)

    def forward(self, x, edges):
        n = x.shape[0]
        pairs = torch.bincount(edges[1] * n + edges[0], minlength=n * n).view(n, n).to(x.dtype)
        degree = pairs.sum(1, keepdim=True)
        near = pairs @ (x @ self.near.weight.t())
        return torch.addmm(self.own.bias, x, self.own.weight.t()) + near / torch.where(degree > 0, degree, torch.ones_like(degree))
