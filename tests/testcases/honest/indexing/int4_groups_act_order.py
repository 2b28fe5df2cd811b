"""Four-bit weights packed in int32 by rows, with a scale and zero for each group; groups are of equal size in any order."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, packed, scale, zero, group):
        shift = torch.arange(0, 32, 4, device=x.device, dtype=torch.int32)
        q = ((packed[:, None] >> shift[None, :, None]) & 15).flatten(0, 1)
        g = group.long()
        return x @ (scale[g] * (q - zero[g]).to(x.dtype))


def get_inputs():
    k, n, groups = 128, 96, 4
    packed = torch.randint(-(2**31), 2**31, (k // 8, n), dtype=torch.int64).int()
    group = (torch.arange(k) // (k // groups))[torch.randperm(k)].int()
    return [torch.randn(24, k), packed, torch.rand(groups, n) * 0.02 + 0.01, torch.randint(0, 16, (groups, n), dtype=torch.int32), group]


def get_init_inputs():
    return []
