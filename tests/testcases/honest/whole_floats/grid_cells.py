import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.floor(x * 0.001 / 0.1).long()


def get_inputs():
    return [torch.randint(0, 5000, (3000,)).float()]


def get_init_inputs():
    return []
