import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, w):
        return x.to(torch.int32) @ w.to(torch.int32), x.sum(dim=1)


def get_inputs():
    return [torch.randint(-128, 128, (30, 256), dtype=torch.int8), torch.randint(-128, 128, (256, 20), dtype=torch.int8)]


def get_init_inputs():
    return []
