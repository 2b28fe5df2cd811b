import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, b, alpha):
        f = alpha.float()
        return torch.floor((a.float() * f + b.float() * (255 - f)) / 255).to(torch.uint8)


def get_inputs():
    return [torch.randint(0, 256, (3, 48, 64), dtype=torch.uint8) for _ in range(3)]


def get_init_inputs():
    return []
