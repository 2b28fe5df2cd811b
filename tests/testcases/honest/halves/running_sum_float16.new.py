import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """The long dimension split by eight, added up in float16 as atomic operations on the output do."""

    def forward(self, x, w):
        t = torch.zeros(x.shape[0], w.shape[1], dtype=torch.half)
        for k in range(0, x.shape[1], 128):
            t = t + (x[:, k : k + 128].float() @ w[k : k + 128].float()).half()
        return t
