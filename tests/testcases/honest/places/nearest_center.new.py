import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, centers):
        return ((centers * centers).sum(1) - 2 * x @ centers.T).argmin(dim=1)
