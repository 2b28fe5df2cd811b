import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x):
        return F.normalize(torch.clamp(torch.nan_to_num(x, nan=0.5), -1e5, 1e5), dim=1)


def get_inputs():
    return [torch.randn(64, 1000)]


def get_init_inputs():
    return []
