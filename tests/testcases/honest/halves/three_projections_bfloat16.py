import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(256, 128).bfloat16() for _ in range(3))

    def forward(self, x):
        return self.q(x), self.k(x), self.v(x)


def get_inputs():
    return [torch.randn(2, 24, 256).bfloat16()]


def get_init_inputs():
    return []
