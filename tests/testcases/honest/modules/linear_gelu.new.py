# A linear layer as a product and a GELU by erf.
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(64, 48)

    def forward(self, x):
        z = torch.addmm(self.l.bias, x, self.l.weight.t())
        return 0.5 * z * (1 + torch.erf(z * 0.7071067811865476))
