# A norm folded into the convolution before it, once.
import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(6, 8, 3)
        self.b = nn.BatchNorm2d(8)
        self.eval()
        self.w = None

    def forward(self, x):
        if self.w is None:
            s = self.b.weight / (self.b.running_var + self.b.eps).sqrt()
            self.w = self.c.weight * s[:, None, None, None]
            self.o = (self.c.bias - self.b.running_mean) * s + self.b.bias
        return F.conv2d(x, self.w, self.o).relu_()
