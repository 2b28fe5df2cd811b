import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(8, 6, 3, bias=False)

    def forward(self, x):
        return self.c(x)


def get_inputs():
    return [torch.randn(1, 8, 18, 18)]


def get_init_inputs():
    return []
