import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x.half().float()


def get_inputs():
    return [torch.randn(3000)]


def get_init_inputs():
    return []
