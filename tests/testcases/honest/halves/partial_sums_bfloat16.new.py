import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """The long dimension split by eight, what each part gives rounded."""

    def forward(self, x, w):
        parts = [x[:, k : k + 256] @ w[k : k + 256] for k in range(0, x.shape[1], 256)]
        return torch.stack(parts).float().sum(0).bfloat16()
