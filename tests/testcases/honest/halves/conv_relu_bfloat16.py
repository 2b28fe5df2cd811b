import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(16, 32, 3, padding=1).bfloat16()

    def forward(self, x):
        return F.relu(self.conv(x))


def get_inputs():
    return [torch.randn(2, 16, 20, 20).bfloat16()]


def get_init_inputs():
    return []
