"""Where the largest of all products stands, counted through."""
import torch


class Model(torch.nn.Module):
    def forward(self, x, w):
        return torch.argmax(x @ w)


def get_inputs():
    return [torch.randn(64, 128), torch.randn(128, 64)]


def get_init_inputs():
    return []
