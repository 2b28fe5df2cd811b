"""One edge after the other in float32, from the last to the first, as atomic additions may come."""
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, weight, target):
        sums = torch.zeros(4096, device=weight.device, dtype=weight.dtype)
        return sums.index_add_(0, target.flip(0), weight.flip(0))
