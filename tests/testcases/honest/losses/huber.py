import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x, z):
        return F.smooth_l1_loss(x, z, beta=0.7)


def get_inputs():
    return [torch.randn(60, 61), torch.randn(60, 61)]


def get_init_inputs():
    return []
