import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        t = torch.arange(64.0, device=x.device).view(-1, 1)
        f = 10000.0 ** (-torch.arange(0, 32, 2, device=x.device) / 32.0)
        c, s = (t * f).cos(), (t * f).sin()
        a, b = x[..., ::2], x[..., 1::2]
        return torch.stack((a * c - b * s, a * s + b * c), dim=-1).flatten(-2)


def get_inputs():
    return [torch.randn(4, 64, 32)]


def get_init_inputs():
    return []
