import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, w):
        return torch.argmax(x[:, :50] @ w[:50] + x[:, 50:] @ w[50:])
