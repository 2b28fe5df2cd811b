"""Largest embedding of bags of one length with a padding index that is skipped."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.bag = nn.EmbeddingBag(words, width, mode="max", padding_idx=3)

    def forward(self, ids):
        return self.bag(ids)


def get_inputs():
    ids = torch.randint(4, 120, (60, 12))
    keep = torch.arange(12) <= torch.randint(0, 12, (60, 1))
    return [torch.where(keep, ids, 3)]


def get_init_inputs():
    return [120, 32]
