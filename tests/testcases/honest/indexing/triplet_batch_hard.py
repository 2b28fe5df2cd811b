"""Hardest positive and negative of each row by labels; every label stands four times."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x, labels):
        d = torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist")
        same = labels[:, None] == labels[None]
        far = d.masked_fill(~same, float("-inf")).amax(1)
        near = d.masked_fill(same, float("inf")).amin(1)
        return F.relu(far - near + 0.3)


def get_inputs():
    labels = torch.arange(75).repeat_interleave(4)[torch.randperm(300)]
    return [torch.randn(300, 16), labels]


def get_init_inputs():
    return []
