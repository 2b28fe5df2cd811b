import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x, z):
        x, z = F.normalize(x, dim=1), F.normalize(z, dim=1)
        return F.cross_entropy(x @ z.t() / 0.07, torch.arange(48, device=x.device))


def get_inputs():
    return [torch.randn(48, 24), torch.randn(48, 24)]


def get_init_inputs():
    return []
