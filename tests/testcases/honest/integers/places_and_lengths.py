import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, table, at, n):
        rows = table[at].sum(dim=1)
        valid = torch.arange(12) < n[:, None]
        return rows / n[:, None], (table[at] * valid[:, :, None]).sum(dim=1)


def get_inputs():
    return [torch.randn(50, 16), torch.randint(0, 50, (30, 12)), torch.randint(1, 13, (30,))]


def get_init_inputs():
    return []
