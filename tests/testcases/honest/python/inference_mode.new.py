# Everything in inference mode.
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        with torch.inference_mode():
            v, m = torch.var_mean(x, -1, unbiased=False, keepdim=True)
            return (x - m) * torch.rsqrt(v + 1e-5) + 1
