import torch
import torch.nn as nn


class Model(nn.Module):
    """The step of a (falling) noise schedule that each noise level belongs to."""

    def forward(self, x, sigmas):
        return torch.searchsorted(-sigmas, -x)


def get_inputs():
    return [torch.rand(256, 256), torch.sort(torch.rand(64), descending=True)[0]]


def get_init_inputs():
    return []
