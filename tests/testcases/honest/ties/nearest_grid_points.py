import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, q, p):
        return ((q[:, None] - p[None]) ** 2).sum(-1).argmin(1)


def get_inputs():
    return [torch.randint(0, 6, (80, 2)).float(), torch.randint(0, 6, (20, 2)).float()]


def get_init_inputs():
    return []
