import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    """The product is rounded before the bias is added."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(768, 512).bfloat16()

    def forward(self, x):
        return F.relu(x @ self.linear.weight.t() + self.linear.bias)
