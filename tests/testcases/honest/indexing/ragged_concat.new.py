"""Where each row goes is its own place and the other's offset; relies on offsets from 0 to the end that never fall."""
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, a, b, at, bt):
        i, j = torch.arange(a.shape[0], device=a.device), torch.arange(b.shape[0], device=a.device)
        row = torch.bucketize(i, at[1:].long().contiguous(), right=True)
        other = torch.bucketize(j, bt[1:].long().contiguous(), right=True)
        out = a.new_empty(a.shape[0] + b.shape[0], a.shape[1])
        out[i + bt.long()[row]] = a
        out[j + at.long()[other + 1]] = b
        return out, at + bt
