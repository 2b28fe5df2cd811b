import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x, w):
        p = torch.softmax(x @ w, 1)
        v, k = p.topk(2, dim=1)
        hot = F.one_hot(k, 8)
        place = hot.reshape(-1, 8).cumsum(0).reshape(hot.shape) * hot
        keep = (place.sum(-1) <= 20).float()
        return k, v * keep


def get_inputs():
    return [torch.randn(64, 32), torch.randn(32, 8)]


def get_init_inputs():
    return []
