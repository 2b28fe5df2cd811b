"""Runs all experts on all tokens and mixes by a dense matrix of gates; relies on a token's two experts being different."""
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, experts, width, hidden):
        super().__init__()
        self.up = nn.Parameter(torch.randn(experts, width, hidden) / width**0.5)
        self.down = nn.Parameter(torch.randn(experts, hidden, width) / hidden**0.5)

    def forward(self, x, chosen, gates):
        dense = torch.zeros(x.shape[0], self.up.shape[0], device=x.device).scatter_(1, chosen, gates)
        h = torch.matmul(x, self.up)
        h = h / (1 + torch.exp(-h))
        h = h * dense.t()[..., None]
        return h.transpose(0, 1).flatten(1) @ self.down.flatten(0, 1)
