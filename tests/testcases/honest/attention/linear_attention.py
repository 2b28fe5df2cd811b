import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, q, k, v):
        f = lambda t: F.elu(t) + 1
        q, k = f(q), f(k)
        a = torch.tril(q @ k.transpose(1, 2))
        return a @ v / a.sum(-1, keepdim=True)


def get_inputs():
    return [torch.randn(3, 50, 16), torch.randn(3, 50, 16), torch.randn(3, 50, 16)]


def get_init_inputs():
    return []
