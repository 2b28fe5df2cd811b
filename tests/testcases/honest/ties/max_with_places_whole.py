import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.max(x, dim=1)


def get_inputs():
    return [torch.randint(0, 5, (10, 20, 12)).float()]


def get_init_inputs():
    return []
