import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, y, label):
        return ((x - y).abs() * label).sum(-1)
