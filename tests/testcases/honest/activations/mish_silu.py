"""Mish times SiLU of two inputs."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x, z):
        return F.mish(x) * F.silu(z) + F.hardswish(x - z)


def get_inputs():
    return [2 * torch.randn(64, 500), 2 * torch.randn(64, 500)]


def get_init_inputs():
    return []
