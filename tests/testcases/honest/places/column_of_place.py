import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, c):
        k = c.reshape(-1).topk(20).indices
        return k // 32, k % 32


def get_inputs():
    return [torch.randint(0, 30, (32, 32))]


def get_init_inputs():
    return []
