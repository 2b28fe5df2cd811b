# A scripted function in place of the module's operations.
import torch
import torch.nn as nn

@torch.jit.script
def gated(v):
    return 0.5 * v * (1 + torch.erf(v * 0.7071067811865476)) * 2


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(64, 48)

    def forward(self, x):
        return gated(self.l(x))
