# A named tuple as the result.
import torch
import torch.nn as nn

from collections import namedtuple

Result = namedtuple('Result', ['mean', 'std'])


class ModelNew(nn.Module):
    def forward(self, x):
        m = x.sum() / x.numel()
        return Result(m, ((x - m).square().sum() / (x.numel() - 1)).sqrt())
