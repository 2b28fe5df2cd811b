import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, w):
        values, places = (x[:, :64] @ w[:64] + x[:, 64:] @ w[64:]).sort(dim=1)
        return values[:, 127].contiguous(), places[:, 127].contiguous()
