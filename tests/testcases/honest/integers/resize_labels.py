import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x):
        return F.interpolate(x.float().unsqueeze(1), scale_factor=3, mode='nearest').squeeze(1).long()


def get_inputs():
    return [torch.randint(0, 19, (3, 20, 20))]


def get_init_inputs():
    return []
