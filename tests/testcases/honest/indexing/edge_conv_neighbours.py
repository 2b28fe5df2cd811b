"""Edge convolution over lists of nearest neighbours, made outside by topk of distances."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, width, out):
        super().__init__()
        self.lin = nn.Linear(2 * width, out)

    def forward(self, x, near):
        b = torch.arange(x.shape[0], device=x.device)[:, None, None]
        y = x[b, near]
        own = x[:, :, None].expand_as(y)
        return F.leaky_relu(self.lin(torch.cat((own, y - own), -1)), 0.2).amax(2)


def get_inputs():
    x = torch.randn(3, 80, 12)
    return [x, torch.cdist(x, x).topk(9, dim=-1, largest=False)[1]]


def get_init_inputs():
    return [12, 32]
