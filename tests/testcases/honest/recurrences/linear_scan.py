import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, x):
        h, out = torch.zeros_like(x[:, 0]), []
        for t in range(x.shape[1]):
            h = a[:, t] * h + x[:, t]
            out.append(h)
        return torch.stack(out, 1)


def get_inputs():
    return [torch.rand(20, 64), torch.randn(20, 64)]


def get_init_inputs():
    return []
