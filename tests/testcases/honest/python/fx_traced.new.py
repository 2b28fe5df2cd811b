# The graph, traced and run again.
import torch
import torch.nn as nn

import torch.fx


class Inner(nn.Module):
    def __init__(self, l):
        super().__init__()
        self.l = l

    def forward(self, x):
        return torch.relu(self.l(x)) + x


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(64, 64)
        self.g = torch.fx.symbolic_trace(Inner(self.l))

    def forward(self, x):
        return self.g(x)
