import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, b):
        u, v = torch.deg2rad(a), torch.deg2rad(b)
        h = torch.sin((v[:, 0] - u[:, 0]) / 2) ** 2
        h = h + u[:, 0].cos() * v[:, 0].cos() * torch.sin((v[:, 1] - u[:, 1]) / 2) ** 2
        return 2 * 6371.0 * torch.asin(torch.sqrt(h))


def get_inputs():
    return [torch.rand(300, 2) * 60, torch.rand(300, 2) * 60]


def get_init_inputs():
    return []
