import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, m):
        a = torch.full((x.shape[1],), -1e30, device=x.device)
        a = torch.cat((x[0, :2], a[2:]))
        for t in range(1, x.shape[0]):
            one = torch.cat((a.new_full((1,), -1e30), a[:-1]))
            two = torch.cat((a.new_full((2,), -1e30), a[:-2])) + m
            a = torch.logsumexp(torch.stack((a, one, two)), 0) + x[t]
        return -torch.logsumexp(a[-2:], 0)


def get_inputs():
    return [torch.log_softmax(torch.randn(20, 9), -1), -1e30 * (torch.arange(9) % 2 == 0)]


def get_init_inputs():
    return []
