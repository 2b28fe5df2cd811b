import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x, c):
        i = ((x.unsqueeze(1) - c) ** 2).sum(-1).argmin(1)
        h = F.one_hot(i, 5).to(x.dtype)
        n = h.sum(0).unsqueeze(1)
        return torch.where(n > 0, (h.t() @ x) / n.clamp(min=1), c)


def get_inputs():
    return [torch.randn(300, 4), torch.randn(5, 4)]


def get_init_inputs():
    return []
