"""Products of one-hot matrices; relies on pointers in range of the beams."""
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, scores, back):
        t, b, k = scores.shape
        step = (back[..., None] == torch.arange(k, device=scores.device)).to(scores.dtype)
        path = torch.eye(k, device=scores.device).expand(b, k, k)
        out = torch.empty_like(scores)
        for s in reversed(range(t)):
            out[s] = (path @ scores[s][..., None]).squeeze(-1)
            path = path @ step[s]
        return out
