import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, mask):
        count = mask.sum(1, keepdim=True)
        return torch.einsum("blk,bl->bk", x, mask.float()) / torch.where(count > 0, count, torch.ones_like(count))
