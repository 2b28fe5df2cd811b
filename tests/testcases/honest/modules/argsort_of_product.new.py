# Places of a sorted product, from the columns sorted the other way round.
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, w):
        return torch.argsort(-(w.t() @ x.t()).t(), dim=1, descending=True)
