"""Pads the segments to the longest and takes one softmax; relies on positive lengths that add up to the rows."""
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, scores, lengths):
        lengths = lengths.long()
        ends = torch.cumsum(lengths, 0)
        k = torch.arange(int(lengths.max()), device=scores.device)
        inside = k[None] < lengths[:, None]
        at = torch.where(inside, (ends - lengths)[:, None] + k[None], torch.zeros_like(k)[None])
        padded = scores[at].masked_fill(~inside[..., None], float("-inf"))
        log = padded - torch.logsumexp(padded, 1, keepdim=True)
        return torch.exp(log)[inside]
