"""A sparse matrix in CSR form with int32 pointers times a dense one."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, indptr, columns, values, dense):
        rows = torch.repeat_interleave(torch.arange(indptr.shape[0] - 1, device=dense.device), (indptr[1:] - indptr[:-1]).long())
        out = torch.zeros(indptr.shape[0] - 1, dense.shape[1], device=dense.device)
        return out.index_add_(0, rows, values[:, None] * dense[columns.long()])


def get_inputs():
    counts = torch.randint(0, 12, (160,))
    indptr = torch.cat((torch.zeros(1, dtype=torch.long), counts.cumsum(0)))
    total = 1000
    indptr = indptr.clamp(max=total)
    indptr[-1] = total
    return [indptr.int(), torch.randint(0, 90, (total,), dtype=torch.int32), torch.randn(total), torch.randn(90, 48)]


def get_init_inputs():
    return []
