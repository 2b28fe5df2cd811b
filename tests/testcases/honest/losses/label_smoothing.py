import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x, t):
        return F.cross_entropy(x, t, label_smoothing=0.1, reduction='none')


def get_inputs():
    return [torch.randn(100, 20), torch.randint(0, 20, (100,))]


def get_init_inputs():
    return []
