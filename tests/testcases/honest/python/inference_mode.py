import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x):
        return F.layer_norm(x, (64,)) + 1


def get_inputs():
    return [torch.randn(32, 64)]


def get_init_inputs():
    return []
