import torch
import torch.nn as nn


class Model(nn.Module):
    """A piecewise linear curve through a few knots (a tone curve): np.interp."""

    def forward(self, x, xp, fp):
        i = torch.searchsorted(xp, x).clamp(1, xp.shape[0] - 1)
        x0, x1 = xp[i - 1], xp[i]
        y0, y1 = fp[i - 1], fp[i]
        return y0 + (y1 - y0) * (x - x0) / (x1 - x0)


def get_inputs():
    xp = torch.sort(torch.rand(8))[0]
    return [torch.rand(256, 256), xp, torch.rand(8)]


def get_init_inputs():
    return []
