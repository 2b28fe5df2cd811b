"""One product gives the sum over classes, the sum of weights is taken once; relies on some label being real."""
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.register_buffer("weight", torch.rand(classes) + 0.5)

    def forward(self, x, labels):
        w = self.weight
        real = labels >= 0
        at = labels.clamp(min=0)
        x = x - x.amax(1, keepdim=True)
        log = torch.log(torch.exp(x).sum(1))
        own = w[at] * (log - x.gather(1, at[:, None]).squeeze(1))
        smooth = log * w.sum() - x @ w
        rows = torch.where(real, 0.9 * own + (0.1 / w.shape[0]) * smooth, torch.zeros_like(log))
        return rows, rows.sum() / (w[at] * real).sum()
