"""Attention over incoming edges with several heads; loops to itself close the list."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, width, heads, each):
        super().__init__()
        self.lin = nn.Linear(width, heads * each, bias=False)
        self.left = nn.Parameter(torch.randn(heads, each) * 0.3)
        self.right = nn.Parameter(torch.randn(heads, each) * 0.3)

    def forward(self, x, edges):
        n = x.shape[0]
        loops = torch.arange(n, device=x.device)
        source, target = torch.cat((edges[0].long(), loops)), torch.cat((edges[1].long(), loops))
        h = self.lin(x).view(n, *self.left.shape)
        score = F.leaky_relu((h * self.left).sum(-1)[source] + (h * self.right).sum(-1)[target], 0.2)
        index = target[:, None].expand_as(score)
        most = torch.full((n, score.shape[1]), float("-inf"), device=x.device).scatter_reduce(0, index, score, "amax")
        p = torch.exp(score - most[target])
        total = torch.zeros_like(most).index_add_(0, target, p)
        p = p / total[target]
        return torch.zeros_like(h).index_add_(0, target, p[..., None] * h[source]).flatten(1)


def get_inputs():
    return [torch.randn(120, 24), torch.randint(0, 120, (2, 500), dtype=torch.int32)]


def get_init_inputs():
    return [24, 4, 8]
