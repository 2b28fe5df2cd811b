import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, h):
        t = torch.zeros(16, dtype=torch.long, device=x.device)
        out = []
        for _ in range(10):
            t = (x[t] + h).argmax(-1)
            out.append(t)
        return torch.stack(out, 1)


def get_inputs():
    return [torch.randn(40, 40), torch.randn(16, 40)]


def get_init_inputs():
    return []
