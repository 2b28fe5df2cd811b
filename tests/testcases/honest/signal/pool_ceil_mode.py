import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x):
        return F.max_pool2d(x, 3, 2, ceil_mode=True), F.avg_pool2d(x, 3, 2, ceil_mode=True)


def get_inputs():
    return [torch.randn(2, 4, 12, 12)]


def get_init_inputs():
    return []
