"""A sine whose phase is a running sum of frequencies: what a sum is off by is nothing beside the sum, and much beside its sine."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, frequency):
        return torch.sin(torch.cumsum(frequency, dim=1))


def get_inputs():
    return [torch.rand(12, 300) * 0.4]


def get_init_inputs():
    return []
