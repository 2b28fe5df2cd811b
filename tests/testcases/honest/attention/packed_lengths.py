import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, *a):
        q, k, v, cu = a
        out = []
        for i in range(len(cu) - 1):
            s, e = int(cu[i]), int(cu[i + 1])
            p = torch.softmax(torch.einsum('qhd,khd->hqk', q[s:e], k[s:e]) * 0.25, -1)
            out.append(torch.einsum('hqk,khd->qhd', p, v[s:e]))
        return torch.cat(out)


def get_inputs():
    return [torch.randn(60, 2, 16), torch.randn(60, 2, 16), torch.randn(60, 2, 16), torch.tensor([0, 7, 8, 40, 60], dtype=torch.int32)]


def get_init_inputs():
    return []
