import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, c, x, w):
        return torch.addmm(c, x, w, beta=0.7, alpha=0.3)


def get_inputs():
    return [torch.randn(48, 96).bfloat16() * 5, torch.randn(48, 320).bfloat16(), torch.randn(320, 96).bfloat16()]


def get_init_inputs():
    return []
