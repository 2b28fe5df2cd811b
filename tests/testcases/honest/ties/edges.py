"""Gradients that are larger than both neighbours along a row: at a lone pixel two are the same by symmetry, which rounding breaks."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, image):
        p = nn.functional.pad(image[:, None], (1, 1, 1, 1), mode="replicate")[:, 0]
        gx = (p[:, :-2, 2:] + 2 * p[:, 1:-1, 2:] + p[:, 2:, 2:]) - (p[:, :-2, :-2] + 2 * p[:, 1:-1, :-2] + p[:, 2:, :-2])
        gy = (p[:, 2:, :-2] + 2 * p[:, 2:, 1:-1] + p[:, 2:, 2:]) - (p[:, :-2, :-2] + 2 * p[:, :-2, 1:-1] + p[:, :-2, 2:])
        size = torch.sqrt(gx * gx + gy * gy)
        sides = nn.functional.pad(size, (1, 1))
        largest = torch.maximum(sides[:, :, :-2], sides[:, :, 2:])
        return torch.where(size >= largest, size, torch.zeros_like(size))


def get_inputs():
    return [torch.rand(3, 48, 56)]


def get_init_inputs():
    return []
