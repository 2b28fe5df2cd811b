import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x):
        return F.pdist(x)


def get_inputs():
    return [torch.randn(32, 16384)]


def get_init_inputs():
    return []
