import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(30, 20)
        self.d = nn.Dropout(0.5)
        self.eval()

    def forward(self, x):
        return self.d(F.relu(self.l(x)))


def get_inputs():
    return [torch.randn(20, 30)]


def get_init_inputs():
    return []
