import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, q, s):
        return (q - 1).float() * s


def get_inputs():
    return [torch.randint(0, 4, (64, 100), dtype=torch.int32), torch.rand(64, 1)]


def get_init_inputs():
    return []
