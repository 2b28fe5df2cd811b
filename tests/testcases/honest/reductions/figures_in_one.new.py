import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """Sums that several figures share, as dot products."""

    def forward(self, x, y):
        d, n = x - y, x.numel()
        squares = torch.dot(d.reshape(-1), d.reshape(-1))
        mse = squares / n
        c = y - y.mean()
        cosine = torch.dot(x.reshape(-1), y.reshape(-1)) / torch.sqrt((x * x).sum() * (y * y).sum())
        return torch.stack([mse, d.abs().sum() / n, -10 * torch.log10(mse), 1 - squares / (c * c).sum(), squares,
                            cosine, torch.maximum(d.max(), -d.min()), d.sum() / n])
