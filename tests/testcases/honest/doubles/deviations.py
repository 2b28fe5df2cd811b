import torch
import torch.nn as nn


class Model(nn.Module):
    """Readings less their mean over their deviation: they come in as float32, and what is made of them stays float64."""

    def forward(self, x):
        d = x.double()
        d = d - d.mean(-1, keepdim=True)
        return d / (d.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt()


def get_inputs():
    return [torch.randn(64, 128) + 3000.0]


def get_init_inputs():
    return []
