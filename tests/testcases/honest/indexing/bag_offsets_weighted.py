"""Weighted sums of embeddings in bags by offsets; the first offset is zero."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(words, width))

    def forward(self, ids, offsets, scale):
        return F.embedding_bag(ids, self.weight, offsets, mode="sum", per_sample_weights=scale)


def get_inputs():
    offsets = torch.cat((torch.tensor([0]), torch.randint(0, 40001, (47,)).sort()[0]))
    return [torch.randint(0, 150, (40000,)), offsets, torch.rand(40000)]


def get_init_inputs():
    return [150, 64]
