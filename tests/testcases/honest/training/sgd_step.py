import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(16, 5) * 0.3)

    def forward(self, x, t):
        with torch.enable_grad():
            w = self.w.detach().requires_grad_(True)
            l = F.cross_entropy(x @ w, t)
            g, = torch.autograd.grad(l, w)
        return {'loss': l.detach(), 'w': self.w.detach() - 0.1 * g}


def get_inputs():
    return [torch.randn(40, 16), torch.randint(0, 5, (40,))]


def get_init_inputs():
    return []
