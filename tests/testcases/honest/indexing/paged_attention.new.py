"""Online softmax over blocks for all sequences at once; relies on lengths from one to the blocks of a table."""
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, q, keys, values, table, lengths):
        b, h, d = q.shape
        block = keys.shape[1]
        q = q * d**-0.5
        most = torch.full((b, h, 1), float("-inf"), device=q.device)
        total = torch.zeros(b, h, 1, device=q.device)
        out = torch.zeros_like(q)
        inside = torch.arange(block, device=q.device)
        last = int((lengths.max() + block - 1).div(block, rounding_mode="floor"))
        for j in range(last):
            at = table[:, j].long()
            k, v = keys[at].permute(0, 2, 1, 3), values[at].permute(0, 2, 1, 3)
            s = (k @ q[..., None]).squeeze(-1)
            s = s.masked_fill((inside[None] + j * block >= lengths[:, None])[:, None], float("-inf"))
            larger = torch.maximum(most, s.amax(-1, keepdim=True))
            p = torch.exp(s - larger)
            shrink = torch.exp(most - larger)
            total = total * shrink + p.sum(-1, keepdim=True)
            out = out * shrink + (p[:, :, None] @ v).squeeze(2)
            most = larger
        return out / total
