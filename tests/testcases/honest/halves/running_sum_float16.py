import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, w):
        return (x.float() @ w.float()).half()


def get_inputs():
    return [torch.randn(32, 1024).half(), (torch.randn(1024, 256) / 256).half()]


def get_init_inputs():
    return []
