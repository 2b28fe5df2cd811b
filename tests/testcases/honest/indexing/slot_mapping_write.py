"""New keys and values written to slots of a cache; slots are the first of a permutation."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, cache, key, value, slots):
        slots = slots.long()
        k = cache[0].index_copy(0, slots, key)
        v = cache[1].clone()
        v[slots] = value
        return torch.stack((k, v))


def get_inputs():
    return [torch.randn(2, 1024, 64), torch.randn(400, 64), torch.randn(400, 64), torch.randperm(1024)[:400].int()]


def get_init_inputs():
    return []
