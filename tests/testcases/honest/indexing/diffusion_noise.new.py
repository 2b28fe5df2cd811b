"""Picks the kept share by a one-hot product and takes roots after; the weight is the smaller of one and five times the odds of noise."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, steps):
        super().__init__()
        self.register_buffer("kept", torch.cumprod(1 - torch.linspace(1e-4, 0.02, steps), 0))

    def forward(self, x, noise, t):
        k = F.one_hot(t, self.kept.shape[0]).to(x.dtype) @ self.kept
        turn = torch.stack((k.sqrt(), (1 - k).sqrt()), 1)
        turn = torch.stack((turn, torch.stack((-turn[:, 1], turn[:, 0]), 1)), 1)
        both = turn @ torch.stack((x.flatten(1), noise.flatten(1)), 1)
        return both[:, 0].view_as(x), both[:, 1].view_as(x), torch.clamp(5 * (1 - k) / k, max=1)
