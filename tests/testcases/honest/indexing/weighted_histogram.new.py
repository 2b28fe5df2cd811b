"""Sorts values and sums runs in double by differences of running sums at bounds found by bisection."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def forward(self, values, weight):
        ordered, at = torch.sort(values, 1)
        run = F.pad(torch.cumsum(weight.gather(1, at).double(), 1), (1, 0))
        bounds = torch.arange(1, 65, device=values.device).expand(values.shape[0], -1).contiguous()
        ends = run.gather(1, torch.searchsorted(ordered, bounds))
        rows = ends - F.pad(ends, (1, 0))[:, :-1]
        return rows.to(weight.dtype), (ends / ends[:, -1:]).to(weight.dtype)
