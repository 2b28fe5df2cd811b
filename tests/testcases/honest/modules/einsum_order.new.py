# A contraction of three tensors in another order.
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, w, z):
        return torch.matmul(x, torch.matmul(w, z))
