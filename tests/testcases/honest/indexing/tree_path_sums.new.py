"""Jumps twice as far each time; relies on parents before children, so that no path is longer than the list."""
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, parent):
        n = x.shape[0]
        y = torch.cat((x, x.new_zeros(1, x.shape[1])))
        jump = torch.cat((parent, parent.new_tensor([n])))
        jump[0] = n
        step = 1
        while step < n:
            y = y + y[jump]
            jump = jump[jump]
            step *= 2
        return y[:n]
