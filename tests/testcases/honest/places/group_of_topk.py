import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x).topk(12, dim=1).indices // 50


def get_inputs():
    return [torch.randn(40, 200) - 1.5]


def get_init_inputs():
    return []
