import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """One kernel in float32, but for the weights, which the second product takes in bfloat16."""

    def forward(self, q, k, v):
        s = q.float() @ k.float().transpose(-1, -2) * 0.125
        e = torch.exp(s - s.amax(-1, keepdim=True))
        return (e.bfloat16().float() @ v.float() / e.sum(-1, keepdim=True)).bfloat16()
