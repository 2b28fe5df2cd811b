import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x):
        k = torch.tensor([1.0, 4.0, 6.0, 4.0, 1.0], device=x.device) / 16
        return F.conv2d(F.pad(x, (2, 2, 2, 2), mode='reflect'), torch.outer(k, k).view(1, 1, 5, 5))


def get_inputs():
    return [torch.rand(2, 1, 24, 24)]


def get_init_inputs():
    return []
