"""The symmetric loss of pairs of directions; the candidate adds both sides' logarithms and takes what is on the diagonal."""
import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, a, b, scale):
        a = a / a.norm(dim=-1, keepdim=True)
        b = b / b.norm(dim=-1, keepdim=True)
        scores = torch.exp(scale) * a @ b.t()
        own = torch.arange(a.shape[0], device=a.device)
        return (F.cross_entropy(scores, own) + F.cross_entropy(scores.t(), own)) / 2


def get_inputs():
    return [torch.randn(512, 128), torch.randn(512, 128), torch.tensor(2.6592)]


def get_init_inputs():
    return []
