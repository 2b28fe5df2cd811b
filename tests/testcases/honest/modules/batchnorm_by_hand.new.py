# BatchNorm over the batch by moments in float64.
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = nn.BatchNorm2d(6)

    def forward(self, x):
        d = x.double()
        m = d.mean((0, 2, 3), keepdim=True)
        v = ((d - m) ** 2).mean((0, 2, 3), keepdim=True)
        y = (d - m) / torch.sqrt(v + 1e-5)
        return (y * self.n.weight.view(1, -1, 1, 1) + self.n.bias.view(1, -1, 1, 1)).float()
