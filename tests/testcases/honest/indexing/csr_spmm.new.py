"""One small product for each row; relies on pointers that never fall."""
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, indptr, columns, values, dense):
        bounds = indptr.tolist()
        out = torch.zeros(len(bounds) - 1, dense.shape[1], device=dense.device)
        columns = columns.long()
        for r, (a, b) in enumerate(zip(bounds[:-1], bounds[1:])):
            if a < b:
                out[r] = values[a:b] @ dense[columns[a:b]]
        return out
