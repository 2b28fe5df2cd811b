"""Goes over classes with one logarithm of sums; labels are classes or 255."""
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, labels):
        log = torch.logsumexp(x, 1)
        keep = (labels != 255).to(x.dtype)
        pixel = torch.zeros_like(log)
        dice = []
        for c in range(x.shape[1]):
            mine = (labels == c).to(x.dtype)
            pixel = pixel + mine * (log - x[:, c])
            p = torch.exp(x[:, c] - log)
            both = (p * mine).flatten(1).sum(1)
            dice.append(1 - (2 * both + 1) / ((p * keep).flatten(1).sum(1) + mine.flatten(1).sum(1) + 1))
        return pixel, torch.stack(dice, 1)
