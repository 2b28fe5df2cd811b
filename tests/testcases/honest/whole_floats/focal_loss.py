"""A focal loss of labels that are floats; the candidate has the sign of the label in the sigmoid."""
import torch


class Model(torch.nn.Module):
    def forward(self, x, label):
        p = torch.sigmoid(x)
        right = torch.where(label == 1, p, 1 - p)
        weight = torch.where(label == 1, 0.25, 0.75)
        return (-weight * (1 - right) ** 2 * torch.log(right + 1e-8)).mean()


def get_inputs():
    return [torch.randn(256, 256), (torch.rand(256, 256) > 0.8).float()]


def get_init_inputs():
    return []
