import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, *a):
        x, lv = a
        b = x.view(-1, 64)
        s = b.abs().amax(1, keepdim=True)
        i = ((b / s)[..., None] - lv).abs().argmin(-1)
        return i.to(torch.uint8), (lv[i] * s).view_as(x)


def get_inputs():
    return [torch.randn(20, 128), torch.tensor([-1.0, -0.6961928, -0.52507305, -0.39491749, -0.28444138, -0.18477343, -0.09105004, 0.0, 0.0795803, 0.1609302, 0.2461123, 0.33791524, 0.44070983, 0.562617, 0.72295684, 1.0])]


def get_init_inputs():
    return []
