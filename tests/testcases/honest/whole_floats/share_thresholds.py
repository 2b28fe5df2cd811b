import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.bucketize(x / x.sum(1, keepdim=True), torch.tensor([0.1, 0.2, 0.25, 0.5], device=x.device))


def get_inputs():
    return [torch.randint(0, 10, (200, 8)).float()]


def get_init_inputs():
    return []
