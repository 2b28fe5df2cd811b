import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x):
        y = F.interpolate(x[None].float(), scale_factor=2, mode='bicubic', align_corners=False)
        return y[0].round().clamp(0, 255).to(torch.uint8)


def get_inputs():
    return [torch.randint(0, 256, (1, 24, 24), dtype=torch.uint8)]


def get_init_inputs():
    return []
