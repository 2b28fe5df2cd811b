"""One column for each root, found by root[i] == i; relies on every root being its own label."""
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, root):
        roots = torch.nonzero(root == torch.arange(root.shape[0], device=x.device)).flatten()
        mark = (root[:, None] == roots[None]).to(x.dtype)
        return x - mark @ ((mark.t() @ x) / mark.sum(0)[:, None])
