# Counts of values by one-hot sums; the reference counts by comparison.
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.nn.functional.one_hot(x, 8).sum(1)
