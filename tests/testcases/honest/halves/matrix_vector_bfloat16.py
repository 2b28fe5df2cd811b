import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, w, x):
        return torch.mv(w, x)


def get_inputs():
    return [torch.randn(600, 512).bfloat16(), torch.randn(512).bfloat16()]


def get_init_inputs():
    return []
