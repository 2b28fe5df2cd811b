import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.remainder(x, 7), torch.div(x, 7, rounding_mode='floor')


def get_inputs():
    return [torch.randint(-1000, 1000, (3000,))]


def get_init_inputs():
    return []
