import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.ConvTranspose2d(5, 4, 3, stride=2)

    def forward(self, x):
        return self.c(x)


def get_inputs():
    return [torch.randn(2, 5, 7, 7)]


def get_init_inputs():
    return []
