import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.classes = torch.nn.Linear(256, 1000)

    def forward(self, x):
        return torch.topk(self.classes(x), 5)[1]
