import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x):
        return F.hardtanh(x, -3e4, 2e4) * 0.5, torch.where(x > 1e3, torch.sqrt(x.abs()), x), torch.clamp(x, -10, 10).exp()


def get_inputs():
    return [torch.randn(70, 90)]


def get_init_inputs():
    return []
