import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, logits):
        return torch.softmax(logits, -1)


def get_inputs():
    x = torch.randn(256, 4096)
    return [x.masked_fill(torch.rand(256, 4096) < 0.1, float("-inf"))]


def get_init_inputs():
    return []
