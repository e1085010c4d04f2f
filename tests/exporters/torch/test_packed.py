"""Layers on packed sequences take rows of any lengths, as many as there are, in any order."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

import entrepot as ep


class Packed(nn.Module):
    def __init__(self, layer, *, ordered=False, total=False, value=0.0, state=False, inside=False):
        super().__init__()
        self.layer, self.ordered, self.total, self.value = layer, ordered, total, value
        self.state, self.inside = state, inside

    def forward(self, x, lengths):
        first = self.layer.batch_first
        packed = pack_padded_sequence(x, lengths, batch_first=first, enforce_sorted=self.ordered)
        if self.inside:  # as a dropout or an embedding between two layers
            packed = PackedSequence(packed.data * 2, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices)
        hx = None
        if self.state:
            hx = torch.arange(1, lengths.shape[0] + 1).float().view(1, -1, 1).expand(1, -1, 4) / 9
        out, last = self.layer(packed, hx)
        total = x.shape[1 if first else 0] if self.total else None
        padded, counts = pad_packed_sequence(out, batch_first=first, padding_value=self.value, total_length=total)
        return padded, counts, last[0] if isinstance(last, tuple) else last


WAYS = {
    "lstm": lambda: Packed(nn.LSTM(3, 4, batch_first=True)),
    "gru, both ways, two layers": lambda: Packed(nn.GRU(3, 4, 2, batch_first=True, bidirectional=True)),
    "rnn, steps first": lambda: Packed(nn.RNN(3, 4, nonlinearity="relu")),
    "sorted": lambda: Packed(nn.LSTM(3, 4, batch_first=True), ordered=True),
    "as long as before": lambda: Packed(nn.LSTM(3, 4, batch_first=True), total=True),
    "padded with ones": lambda: Packed(nn.GRU(3, 4, batch_first=True), value=1.0),
    "with a state": lambda: Packed(nn.GRU(3, 4, batch_first=True), state=True),
    "projected, both ways, two layers": lambda: Packed(
        nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True, proj_size=2), value=1.0
    ),
    "projected, steps first": lambda: Packed(nn.LSTM(3, 4, bias=False, proj_size=2)),
    "data changed": lambda: Packed(nn.LSTM(3, 4, batch_first=True), inside=True),
}


@pytest.mark.parametrize("name", WAYS)
def test_packed_sequences_of_any_lengths(name):
    torch.manual_seed(0)
    module = WAYS[name]().eval()
    first = module.layer.batch_first

    def call(lengths, steps):
        x = torch.randn(len(lengths), steps, 3)
        return (x if first else x.transpose(0, 1).contiguous()), torch.tensor(lengths)

    model = ep.export(module, call([5, 4], 6))
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString())
    for lengths, steps in (([4, 4, 2], 4), ([9], 9), ([7, 3, 3, 1], 8), ([2, 1], 3)):
        given = call(lengths if module.ordered else lengths[::-1], steps)
        feeds = {spec.name: tensor.numpy() for spec, tensor in zip(model.inputs, given, strict=True)}
        assert ep.Session(model).run(feeds)  # no size of the sample is a limit
        for found, expected in zip(session.run(None, feeds), module(*given), strict=True):
            assert np.allclose(found, expected.detach().numpy(), rtol=1e-4, atol=1e-5)
