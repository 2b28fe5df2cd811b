"""Rotary embedding by position ids from a table of cosines and sines."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, size, longest):
        super().__init__()
        rate = 1.0 / 10000 ** (torch.arange(0, size, 2).float() / size)
        angle = torch.outer(torch.arange(longest).float(), rate)
        self.register_buffer("cos", torch.cat((angle, angle), -1).cos())
        self.register_buffer("sin", torch.cat((angle, angle), -1).sin())

    def forward(self, x, positions):
        cos, sin = self.cos[positions][:, None], self.sin[positions][:, None]
        half = x.shape[-1] // 2
        turned = torch.cat((-x[..., half:], x[..., :half]), -1)
        return x * cos + turned * sin


def get_inputs():
    begin = torch.randint(0, 400, (4, 1))
    return [torch.randn(4, 8, 100, 32), begin + torch.arange(100)]


def get_init_inputs():
    return [32, 512]
