import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return sum((x >> k) & 1 for k in range(32))


def get_inputs():
    return [torch.randint(-2 ** 31, 2 ** 31 - 1, (2000,), dtype=torch.int32)]


def get_init_inputs():
    return []
