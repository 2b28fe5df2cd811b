import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.topk(torch.relu(x - 1.5), 5, dim=1)


def get_inputs():
    return [torch.randn(60, 50)]


def get_init_inputs():
    return []
