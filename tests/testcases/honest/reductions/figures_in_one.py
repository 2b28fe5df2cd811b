import torch
import torch.nn as nn


class Model(nn.Module):
    """What is told of a reconstruction: figures of all sizes in one tensor."""

    def forward(self, x, y):
        d = x - y
        mse = (d * d).mean()
        psnr = 10 * torch.log10(1.0 / mse)
        r2 = 1 - (d * d).sum() / ((y - y.mean()) ** 2).sum()
        cosine = (x * y).sum() / (x.norm() * y.norm())
        return torch.stack([mse, d.abs().mean(), psnr, r2, (d * d).sum(), cosine, d.abs().max(), d.mean()])


def get_inputs():
    x = torch.rand(256, 256)
    return [x, x + 0.02 * torch.randn(256, 256)]


def get_init_inputs():
    return []
