"""A packed GRU over sequences whose lengths fall; outputs after the end are zero."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.gru = nn.GRU(width, hidden, batch_first=True)

    def forward(self, x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths.cpu(), batch_first=True)
        out, last = self.gru(packed)
        return nn.utils.rnn.pad_packed_sequence(out, batch_first=True, total_length=x.shape[1])[0], last[0]


def get_inputs():
    return [torch.randn(16, 20, 12), torch.randint(1, 21, (16,)).sort(descending=True)[0]]


def get_init_inputs():
    return [12, 24]
