import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, label):
        off = label - x
        return (off * off).sum(1) + (off * off * (label > 2.5)).sum(1)
