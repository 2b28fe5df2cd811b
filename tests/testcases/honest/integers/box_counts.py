import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x):
        return F.avg_pool2d(x.float().unsqueeze(1), 5, 1, 2, divisor_override=1).squeeze(1).round().long()


def get_inputs():
    return [torch.rand(4, 30, 30) > 0.6]


def get_init_inputs():
    return []
