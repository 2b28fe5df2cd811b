import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """Sixteen lanes, each rounded, and so is their sum."""

    def forward(self, w, x):
        return (w.float() * x.float()).reshape(w.shape[0], 16, -1).sum(-1).bfloat16().sum(-1)
