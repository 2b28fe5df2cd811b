"""One formula for the three, max(x, 0) + a * (exp(min(x, 0) / b) - 1), with scales for channels."""
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        n = x.shape[1] // 3
        spread = lambda *v: torch.tensor(v, device=x.device).repeat_interleave(n)[:, None, None]
        right = spread(1.0, 1.0507009873554805, 1.0)
        left = spread(0.7, 1.0507009873554805 * 1.6732632423543772, 1.5)
        rate = spread(1.0, 1.0, 1 / 1.5)
        return right * torch.clamp(x, min=0) + left * (torch.exp(torch.clamp(x, max=0) * rate) - 1)
