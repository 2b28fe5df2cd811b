import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, *a):
        q, k, v = a
        n = q.shape[1]
        i = torch.arange(n, device=q.device)
        m = (i[:, None] >= i[None]) & (i[:, None] - i[None] < 16)
        s = (q @ k.transpose(1, 2) * q.shape[-1] ** -0.5).masked_fill(~m, float('-inf'))
        return torch.softmax(s, -1) @ v


def get_inputs():
    return [torch.randn(4, 70, 24) for _ in range(3)]


def get_init_inputs():
    return []
