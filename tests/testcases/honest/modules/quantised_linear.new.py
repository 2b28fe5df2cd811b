# A linear layer of values brought to an int8 grid, quotients as products.
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(20, 40))

    def forward(self, x):
        s = x.abs().amax() / 127
        q = torch.round(x * (127 / x.abs().amax())).clamp(-127, 127)
        return (q @ self.w.t()) * s
