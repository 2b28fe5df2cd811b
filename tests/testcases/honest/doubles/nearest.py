import torch
import torch.nn as nn


class Model(nn.Module):
    """The nearest other point, in metres of a grid that begins far away."""

    def forward(self, p):
        d = (p[:, :, None] - p[:, None]).pow(2).sum(-1) + torch.eye(p.shape[1], dtype=torch.float64, device=p.device) * 1e12
        return d.argmin(-1)


def get_inputs():
    return [torch.randn(4, 128, 2, dtype=torch.float64) * 50.0 + torch.tensor([5.0e5, 5.4e6], dtype=torch.float64)]


def get_init_inputs():
    return []
