import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, *a):
        q, k, v, ig, fg = a
        B, T, D = q.shape
        C = torch.zeros(B, D, D)
        n = torch.zeros(B, D)
        m = torch.zeros(B)
        out = []
        for t in range(T):
            lf = F.logsigmoid(fg[:, t])
            m2 = torch.maximum(lf + m, ig[:, t])
            f_, i_ = torch.exp(lf + m - m2), torch.exp(ig[:, t] - m2)
            C = f_[:, None, None] * C + i_[:, None, None] * v[:, t, :, None] * k[:, t, None]
            n = f_[:, None] * n + i_[:, None] * k[:, t]
            m = m2
            out.append((C @ q[:, t, :, None]).squeeze(-1) / torch.maximum((n * q[:, t]).sum(-1).abs(), torch.exp(-m))[:, None])
        return torch.stack(out, 1)


def get_inputs():
    return [torch.randn(2, 30, 8), torch.randn(2, 30, 8) / 3, torch.randn(2, 30, 8), torch.randn(2, 30), torch.randn(2, 30) + 2]


def get_init_inputs():
    return []
