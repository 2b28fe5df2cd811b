"""Cross entropy of logits with soft targets and a weight of positives, by rows."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.register_buffer("positive", torch.rand(classes) * 3 + 1)

    def forward(self, x, t):
        return F.binary_cross_entropy_with_logits(x, t, pos_weight=self.positive, reduction="none").mean(1)


def get_inputs():
    return [4 * torch.randn(300, 80), torch.rand(300, 80)]


def get_init_inputs():
    return [80]
