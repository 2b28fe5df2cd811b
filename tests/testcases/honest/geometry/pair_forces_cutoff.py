import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, *a):
        x = a[0]
        d = x[:, None] - x[None]
        d = d - 10.0 * torch.round(d / 10.0)
        r2 = (d * d).sum(-1)
        eye = torch.eye(len(x), device=x.device).bool()
        r2 = r2.masked_fill(eye, 1.0)
        i6 = (1 / r2) ** 3
        m = (r2 < 9.0) & ~eye
        e = 4 * (i6 * i6 - i6) * m
        f = (24 * (2 * i6 * i6 - i6) / r2 * m)[..., None] * d
        return 0.5 * e.sum(), f.sum(1)


def get_inputs():
    return [(torch.cartesian_prod(*[torch.arange(5.)] * 3) * 2 + torch.rand(125, 3) * 0.5)]


def get_init_inputs():
    return []
