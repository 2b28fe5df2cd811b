import torch
import torch.nn as nn


class Model(nn.Module):
    """Divergence of two distributions by rows, in float64 between inputs and outputs of float32."""

    def forward(self, p, q):
        a, b = p.double().log_softmax(-1), q.double().log_softmax(-1)
        return (a.exp() * (a - b)).sum(-1).float()


def get_inputs():
    return [torch.randn(64, 100), torch.randn(64, 100)]


def get_init_inputs():
    return []
