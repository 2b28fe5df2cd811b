import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.floor(x / 3)


def get_inputs():
    return [torch.randint(0, 100, (64, 64)).float()]


def get_init_inputs():
    return []
