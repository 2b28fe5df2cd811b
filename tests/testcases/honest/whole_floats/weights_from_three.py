"""Distances from whole labels, twice as heavy from the third label on."""
import torch


class Model(torch.nn.Module):
    def forward(self, x, label):
        weight = torch.where(label >= 3, 2.0 * torch.ones_like(x), torch.ones_like(x))
        return (weight * (x - label) ** 2).sum(1)


def get_inputs():
    return [torch.randn(512, 128), torch.randint(0, 6, (512, 128)).float()]


def get_init_inputs():
    return []
