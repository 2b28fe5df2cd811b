"""The median of rows of products and where it stands; the candidate adds halves of the sums and sorts."""
import torch


class Model(torch.nn.Module):
    def forward(self, x, w):
        return torch.median(x @ w, dim=1)


def get_inputs():
    return [torch.randn(128, 128), torch.randn(128, 255)]


def get_init_inputs():
    return []
