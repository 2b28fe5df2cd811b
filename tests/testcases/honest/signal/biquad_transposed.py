import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, *a):
        x, b, c = a
        y1 = y2 = x1 = x2 = torch.zeros(x.shape[0])
        o = []
        for t in range(x.shape[1]):
            y = b[0] * x[:, t] + b[1] * x1 + b[2] * x2 - c[0] * y1 - c[1] * y2
            x2, x1, y2, y1 = x1, x[:, t], y1, y
            o.append(y)
        return torch.stack(o, 1)


def get_inputs():
    return [torch.randn(8, 200), torch.tensor([0.2, 0.4, 0.2]), torch.tensor([-1.5, 0.7])]


def get_init_inputs():
    return []
