import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x.to(torch.float16)


def get_inputs():
    return [torch.randn(3000) * 300]


def get_init_inputs():
    return []
