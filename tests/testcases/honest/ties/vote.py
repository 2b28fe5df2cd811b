import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, q, p, c):
        d = torch.cdist(q, p)
        i = d.topk(5, largest=False)[1]
        return F.one_hot(c[i], 4).sum(1).argmax(1)


def get_inputs():
    return [torch.randn(40, 3), torch.randn(60, 3), torch.randint(0, 4, (60,))]


def get_init_inputs():
    return []
