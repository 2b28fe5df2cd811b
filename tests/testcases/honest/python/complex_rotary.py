import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        f = 10000.0 ** (-torch.arange(8, device=x.device).float() / 8)
        t = torch.arange(12, device=x.device).float()[:, None] * f
        c, s = t.cos()[:, None], t.sin()[:, None]
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack([a * c - b * s, a * s + b * c], -1).flatten(-2)


def get_inputs():
    return [torch.randn(2, 12, 4, 16)]


def get_init_inputs():
    return []
