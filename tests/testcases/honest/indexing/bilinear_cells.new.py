"""Flat indices of four corners at once, with products of weights; relies on rows and columns in range of their own side."""
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, grid, cells, part):
        h, w, c = grid.shape
        corner = cells @ cells.new_tensor([w, 1])
        at = corner[:, None] + cells.new_tensor([0, 1, w, w + 1])
        v, u = part[:, 0], part[:, 1]
        weight = torch.stack(((1 - v) * (1 - u), (1 - v) * u, v * (1 - u), v * u), 1)
        return torch.einsum("nk,nkc->nc", weight, grid.reshape(h * w, c)[at])
