import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """One product for all three, rounded before the biases are added."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(256, 128).bfloat16() for _ in range(3))

    def forward(self, x):
        w = torch.cat([self.q.weight, self.k.weight, self.v.weight])
        b = torch.cat([self.q.bias, self.k.bias, self.v.bias])
        y = x @ w.t() + b
        return tuple(part.contiguous() for part in y.split(128, -1))
