import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(6, 8, 3, padding=1, stride=2)

    def forward(self, x):
        return self.c(x)


def get_inputs():
    return [torch.randn(2, 6, 14, 14)]


def get_init_inputs():
    return []
