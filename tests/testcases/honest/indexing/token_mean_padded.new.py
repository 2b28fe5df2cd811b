"""Counts words of each row and multiplies the counts by the table; relies on at least one token in a row."""
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.embedding = nn.Embedding(words, width, padding_idx=0)

    def forward(self, tokens):
        weight = self.embedding.weight
        counts = torch.zeros(tokens.shape[0], weight.shape[0], device=weight.device)
        counts.scatter_add_(1, tokens, torch.ones_like(tokens, dtype=weight.dtype))
        counts = counts[:, 1:]
        return (counts @ weight[1:]) / counts.sum(1, keepdim=True)
