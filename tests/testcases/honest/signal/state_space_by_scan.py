import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, *a):
        u, la, b, c = a
        n = u.shape[-1]
        lam = torch.complex(-torch.exp(la[0]), la[1])
        dA = torch.exp(lam * 0.05)
        k = (c * b * (dA[:, None] ** torch.arange(n, device=u.device))).sum(0) if False else torch.einsum('n,nl->l', torch.complex(c[0], c[1]) * torch.complex(b[0], b[1]), torch.exp(lam[:, None] * 0.05 * torch.arange(n, device=u.device))).real * 2
        return torch.fft.irfft(torch.fft.rfft(u, 2 * n) * torch.fft.rfft(k, 2 * n), 2 * n)[..., :n]


def get_inputs():
    return [torch.randn(6, 200), torch.stack((torch.randn(16) * 0.5, torch.arange(16.) * 3)), torch.randn(2, 16), torch.randn(2, 16)]


def get_init_inputs():
    return []
