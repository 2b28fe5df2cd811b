"""The nearest of 32 centers, whose distances the candidate computes by the products, as |c|^2 - 2 x.c."""
import torch


class Model(torch.nn.Module):
    def forward(self, x, centers):
        return torch.cdist(x, centers, compute_mode="donot_use_mm_for_euclid_dist").argmin(dim=1)


def get_inputs():
    centers = torch.randn(32, 64) * 4
    return [centers[torch.randint(0, 32, (512,))] + torch.randn(512, 64) * 0.5, centers]


def get_init_inputs():
    return []
