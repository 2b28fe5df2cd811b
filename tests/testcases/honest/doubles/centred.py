import torch
import torch.nn as nn


class Model(nn.Module):
    """Points on a grid that begins far away, taken about their centre and scaled; the rest of a network is in float32."""

    def forward(self, p):
        c = p - p.mean(1, keepdim=True)
        return (c / c.square().mean((1, 2), keepdim=True).sqrt()).float()


def get_inputs():
    return [torch.rand(16, 512, 3, dtype=torch.float64) * 80 + torch.tensor([5.0e5, 5.4e6, 100.0], dtype=torch.float64)]


def get_init_inputs():
    return []
