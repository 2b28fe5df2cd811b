"""Goes level by level from the deepest; depths come from one pass, since parents stand first."""
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.lin = nn.Linear(width, width)
        self.back = nn.Linear(width, width, bias=False)

    def forward(self, x, parent):
        depth = [0]
        for p in parent.tolist()[1:]:
            depth.append(depth[p] + 1)
        depth = torch.tensor(depth, device=x.device)
        ahead = self.lin(x)
        sums = torch.zeros_like(x)
        out = torch.zeros_like(x)
        parent = parent.long()
        for level in range(int(depth.max()), -1, -1):
            mine = torch.nonzero(depth == level).flatten()
            y = torch.tanh(ahead[mine] + sums[mine] @ self.back.weight.t())
            out[mine] = y
            if level > 0:
                sums.index_add_(0, parent[mine], y)
        return out
