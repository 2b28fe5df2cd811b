import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x, s):
        l = F.log_softmax(x, dim=-1) + s.unsqueeze(-1)
        v, i = l.flatten(1).topk(4, dim=1)
        return v, i // 50, i % 50


def get_inputs():
    return [torch.randn(12, 4, 50), torch.randn(12, 4)]


def get_init_inputs():
    return []
