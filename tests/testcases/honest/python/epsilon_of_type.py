import torch
import torch.nn as nn


class Model(nn.Module):
    """The entropy of labels by torch.distributions, which clamps probabilities by the epsilon of their type."""

    def forward(self, p, y):
        d = torch.distributions.Bernoulli(probs=p, validate_args=False)
        return d.log_prob(y), d.entropy()


def get_inputs():
    return [(torch.rand(60, 100) * 1.5 - 0.25).clamp(0, 1), (torch.rand(60, 100) < 0.5).float()]


def get_init_inputs():
    return []
