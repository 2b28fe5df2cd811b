"""Every expert has equally many tokens, by a permutation modulo the number of experts."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, experts, width, out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(experts, width, out) / width**0.5)
        self.bias = nn.Parameter(torch.randn(experts, out))

    def forward(self, x, expert):
        out = x.new_zeros(x.shape[0], self.weight.shape[2])
        for e in range(self.weight.shape[0]):
            mine = expert == e
            out[mine] = torch.relu(x[mine] @ self.weight[e] + self.bias[e])
        return out


def get_inputs():
    return [torch.randn(128, 40), torch.randperm(128) % 8]


def get_init_inputs():
    return [8, 40, 32]
