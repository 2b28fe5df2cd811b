"""Each slot looks up who writes it; relies on slots being written at most once."""
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, cache, key, value, slots):
        writer = torch.full((cache.shape[1],), -1, dtype=torch.long, device=cache.device)
        writer.scatter_(0, slots.long(), torch.arange(slots.shape[0], device=cache.device))
        old = torch.arange(cache.shape[1], device=cache.device)
        at = torch.where(writer >= 0, writer + cache.shape[1], old)
        return torch.stack((torch.cat((cache[0], key))[at], torch.cat((cache[1], value))[at]))
