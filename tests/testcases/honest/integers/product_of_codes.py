import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, b, sa, sb):
        return ((a.float() - 8) * sa) @ ((b.float() - 8) * sb)


def get_inputs():
    codes = [torch.randint(0, 16, (64, 256), dtype=torch.int32), torch.randint(0, 16, (256, 48), dtype=torch.int32)]
    return codes + [torch.rand(64, 1), torch.rand(1, 48)]


def get_init_inputs():
    return []
