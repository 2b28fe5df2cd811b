import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(6, 8, 3)
        self.b = nn.BatchNorm2d(8)
        self.eval()

    def forward(self, x):
        return torch.relu(self.b(self.c(x)))


def get_inputs():
    return [torch.randn(2, 6, 12, 12)]


def get_init_inputs():
    return []
