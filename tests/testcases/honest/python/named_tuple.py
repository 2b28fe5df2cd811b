import torch
import torch.nn as nn

from collections import namedtuple

Result = namedtuple('Result', ['mean', 'std'])


class Model(nn.Module):
    def forward(self, x):
        return Result(x.mean(), x.std())


def get_inputs():
    return [torch.randn(32, 64)]


def get_init_inputs():
    return []
