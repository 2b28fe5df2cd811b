import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x):
        y = F.interpolate(x[None].float(), size=(72, 96), mode='bilinear', align_corners=False)
        return y[0].round().to(torch.uint8)


def get_inputs():
    return [torch.randint(0, 256, (3, 48, 64), dtype=torch.uint8)]


def get_init_inputs():
    return []
