import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, b, s):
        a = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
        lo = torch.max(b[:, None, :2], b[None, :, :2])
        hi = torch.min(b[:, None, 2:], b[None, :, 2:])
        n = (hi - lo).clamp(min=0).prod(-1)
        m = n / (a[:, None] + a[None] - n) > 0.3
        keep = torch.ones(60, dtype=torch.bool, device=b.device)
        for i in s.argsort(descending=True).tolist():
            later = s < s[i]
            keep = torch.where(keep[i] & m[i] & later, torch.zeros_like(keep), keep)
        return keep


def get_inputs():
    c = torch.rand(60, 2)
    return [torch.cat((c, c + 0.05 + 0.3 * torch.rand(60, 2)), 1), torch.rand(60)]


def get_init_inputs():
    return []
