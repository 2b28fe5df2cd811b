import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, *a):
        lg, p = a
        s, i = torch.sort(lg, dim=-1, descending=True)
        c = torch.softmax(s, -1).cumsum(-1)
        m = c - torch.softmax(s, -1) > p[:, None]
        s = s.masked_fill(m, float('-inf'))
        return torch.full_like(lg, float('-inf')).scatter(-1, i, s)


def get_inputs():
    return [torch.randn(32, 500) * 2, torch.rand(32) * 0.3 + 0.6]


def get_init_inputs():
    return []
