import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        m = torch.tensor([[0.393, 0.769, 0.189], [0.349, 0.686, 0.168], [0.272, 0.534, 0.131]], device=x.device)
        return (m @ x.reshape(3, -1).float()).clamp(max=255).to(torch.uint8).reshape(x.shape)


def get_inputs():
    return [torch.randint(0, 256, (3, 48, 64), dtype=torch.uint8)]


def get_init_inputs():
    return []
