import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x):
        return F.max_pool2d(F.relu(x), 2, return_indices=True)


def get_inputs():
    return [torch.randn(2, 6, 16, 16)]


def get_init_inputs():
    return []
