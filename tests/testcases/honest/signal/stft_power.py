import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, *a):
        w = torch.hann_window(64, device=a[0].device)
        s = torch.stft(a[0], 64, 16, window=w, center=True, pad_mode='reflect', return_complex=True)
        return s.abs() ** 2


def get_inputs():
    return [torch.randn(2, 500)]


def get_init_inputs():
    return []
