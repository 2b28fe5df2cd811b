import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.randint(0, 16, (40, 300)), torch.randint(-8, 8, (300, 30))]


def get_init_inputs():
    return []
