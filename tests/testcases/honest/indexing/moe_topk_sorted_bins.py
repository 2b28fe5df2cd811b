"""Swiglu experts by topk, where the candidate sorts pairs of tokens and experts."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, experts, width, hidden):
        super().__init__()
        self.gate = nn.Parameter(torch.randn(experts, hidden, width) / width**0.5)
        self.up = nn.Parameter(torch.randn(experts, hidden, width) / width**0.5)
        self.down = nn.Parameter(torch.randn(experts, width, hidden) / hidden**0.5)

    def forward(self, x, chosen, scores):
        weights = torch.softmax(scores, -1)
        out = torch.zeros_like(x)
        for k in range(chosen.shape[1]):
            e = chosen[:, k].long()
            a = torch.einsum("td,thd->th", x, self.gate[e])
            b = torch.einsum("td,thd->th", x, self.up[e])
            out = out + weights[:, k, None] * torch.einsum("th,tdh->td", F.silu(a) * b, self.down[e])
        return out


def get_inputs():
    scores, chosen = torch.randn(64, 6).topk(2, dim=-1)
    return [torch.randn(64, 24), chosen.int(), scores]


def get_init_inputs():
    return [6, 24, 32]
