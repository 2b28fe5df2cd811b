"""Where running sums of 16,384 terms are highest: two places are often as high but for rounding."""
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.cumsum(x, dim=1).argmax(dim=1)


def get_inputs():
    return [torch.randn(64, 16384)]


def get_init_inputs():
    return []
