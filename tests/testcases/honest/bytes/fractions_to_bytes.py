import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, *a):
        return (a[0] * 255).to(torch.uint8).float() / 255


def get_inputs():
    return [torch.rand(3, 40, 40)]


def get_init_inputs():
    return []
