import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, w):
        a = (x.int().unsqueeze(2) * w.int().unsqueeze(0)).sum(1)
        return torch.clamp(torch.round(a.float() * 0.0123), -128, 127).to(torch.int8)


def get_inputs():
    return [torch.randint(-128, 128, (24, 40), dtype=torch.int8), torch.randint(-128, 128, (40, 24), dtype=torch.int8)]


def get_init_inputs():
    return []
