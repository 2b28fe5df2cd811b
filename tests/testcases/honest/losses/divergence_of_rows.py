import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """How far a student's distribution is from its teacher's, row by row, at a temperature of two."""

    def forward(self, student, teacher):
        one, other = F.log_softmax(student / 2, -1), F.log_softmax(teacher / 2, -1)
        return F.kl_div(one, other, log_target=True, reduction="none").sum(-1)


def get_inputs():
    return [torch.randn(64, 300), torch.randn(64, 300)]


def get_init_inputs():
    return []
