import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, b, s):
        order = s.argsort(descending=True)
        b = b[order]
        lt = torch.maximum(b[:, None, :2], b[None, :, :2])
        rb = torch.minimum(b[:, None, 2:], b[None, :, 2:])
        i = (rb - lt).clamp(min=0).prod(-1)
        a = (b[:, 2:] - b[:, :2]).prod(-1)
        over = i / (a[:, None] + a[None] - i) > 0.3
        keep = torch.ones(len(b), dtype=torch.bool, device=b.device)
        for k in range(len(b)):
            keep = keep & ~(over[k] & keep[k] & (torch.arange(len(b), device=b.device) > k))
        return torch.zeros_like(keep).scatter_(0, order, keep)


def get_inputs():
    return [(lambda p: torch.cat([p, p + torch.rand(40, 2) * 4 + 1], 1))(torch.rand(40, 2) * 10), torch.arange(40) // 2]


def get_init_inputs():
    return []
