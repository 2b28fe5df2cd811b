import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return (x.sum(-1) > 0)


def get_inputs():
    return [torch.randint(-2, 3, (500, 6)).float() * 0.5]


def get_init_inputs():
    return []
