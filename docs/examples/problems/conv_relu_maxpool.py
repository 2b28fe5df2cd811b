"""Convolution, ReLU and max-pooling: the first layers of a small image network."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, channels_in, channels_out, kernel):
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels_out, kernel, padding=kernel // 2)

    def forward(self, x):
        return F.max_pool2d(torch.relu(self.conv(x)), kernel_size=2, stride=2)


def get_inputs():
    return [torch.randn(8, 3, 96, 96)]


def get_init_inputs():
    return [3, 32, 5]
