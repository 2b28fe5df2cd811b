# A view of the input as the output.
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.view(16, 128), x.t()
