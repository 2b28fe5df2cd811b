import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, a, b, t):
        k = ((a[:, None] - b[None]) ** 2).sum(-1).topk(5, dim=1, largest=False).indices
        return F.one_hot(t[k], 4).sum(1)


def get_inputs():
    return [torch.randint(0, 9, (60, 2)).float(), torch.randint(0, 9, (50, 2)).float(), torch.randint(0, 4, (50,))]


def get_init_inputs():
    return []
