import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    """Everything in float32, rounded at the end."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(256, 256) for _ in range(4)]).bfloat16()

    def forward(self, x):
        x = x.float()
        for layer in self.layers:
            x = x + F.silu(F.linear(x, layer.weight.float(), layer.bias.float()))
        return x.bfloat16()
