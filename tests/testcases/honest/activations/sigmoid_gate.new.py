"""The sigmoid by tanh and its logarithm from the side of the smaller exponential."""
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.lin = nn.Linear(width, 2 * width)

    def forward(self, x):
        width = x.shape[-1]
        a = x @ self.lin.weight[:width].t() + self.lin.bias[:width]
        b = x @ self.lin.weight[width:].t() + self.lin.bias[width:]
        log = torch.clamp(3 * b, max=0) - torch.log(1 + torch.exp(-3 * b.abs()))
        return a * (0.5 + 0.5 * torch.tanh(1.5 * b)), log.sum(-1) / width
