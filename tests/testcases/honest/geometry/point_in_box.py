import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, p, b):
        return ((p[:, None] >= b[None, :, :2]) & (p[:, None] <= b[None, :, 2:])).all(-1)


def get_inputs():
    return [torch.rand(100, 2), torch.cat((torch.rand(20, 2) * 0.5, 0.5 + torch.rand(20, 2) * 0.5), 1)]


def get_init_inputs():
    return []
