# Numbers, flags, strings and nothing among the arguments.
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, s, n, flag, mode, none):
        y = torch.clamp(torch.add(x * s, n), min=0) if flag else x * s + n
        return y.sum(1) / y.shape[1] + (1 if none is None else 0)
