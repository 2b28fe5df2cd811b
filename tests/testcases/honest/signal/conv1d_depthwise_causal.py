import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv1d(12, 12, 4, groups=12)

    def forward(self, x):
        return F.silu(self.c(F.pad(x, (3, 0))))


def get_inputs():
    return [torch.randn(3, 12, 60)]


def get_init_inputs():
    return []
