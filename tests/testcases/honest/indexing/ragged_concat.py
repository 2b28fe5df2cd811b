"""Two ragged batches joined row by row, by offsets of each."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, b, at, bt):
        parts = []
        for i in range(at.shape[0] - 1):
            parts += [a[int(at[i]) : int(at[i + 1])], b[int(bt[i]) : int(bt[i + 1])]]
        return torch.cat(parts), at + bt


def get_inputs():
    cut = lambda n: torch.cat((torch.tensor([0]), torch.randint(0, n + 1, (31,)).sort()[0], torch.tensor([n]))).int()
    return [torch.randn(300, 24), torch.randn(200, 24), cut(300), cut(200)]


def get_init_inputs():
    return []
