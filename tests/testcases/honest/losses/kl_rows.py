import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, p, q):
        return F.kl_div(torch.log(q), p, reduction='batchmean')


def get_inputs():
    return [torch.softmax(torch.randn(50, 40), -1), torch.softmax(torch.randn(50, 40), -1)]


def get_init_inputs():
    return []
