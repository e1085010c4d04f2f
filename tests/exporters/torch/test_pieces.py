"""Loops over pieces of different sizes, and parts whose lengths are an input: the file takes every size."""

from __future__ import annotations

import math

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

import entrepot as ep


class Appended(nn.Module):
    def forward(self, x):
        found = []
        for start in range(0, x.shape[0], 4):
            found.append(x[start : start + 4].cumsum(0))
        return torch.cat(found)


class Listed(nn.Module):
    def forward(self, x):
        return torch.cat([part.softmax(1) for part in x.split(3, dim=1)], dim=1)


class After(nn.Module):
    """The list is not empty before the loop, and another one grows beside it."""

    def forward(self, x):
        parts, sums = [x[:2]], []
        for part in torch.split(x, 3):
            parts.append(part - part.mean())
            sums.append(part.sum())
        return torch.cat(parts, -2), torch.stack(sums)


class While(nn.Module):
    def forward(self, x):
        at, found = 0, []
        while at < x.shape[0]:
            found.append(x[at : at + 4].flip(0))
            at += 4
        return x + torch.cat(found)


class Windows(nn.Module):
    """Where pieces begin and end is a list of pairs, made before they are taken; another one goes along with it."""

    def forward(self, x):
        inner, outer = [(0, 1)], [(0, x.shape[0])]
        for start in range(1, x.shape[0], 4):
            inner.append((start, min(x.shape[0], start + 4)))
            outer.append((start - 1, start + 5))
        found = []
        for (start, end), (first, last) in zip(inner, outer, strict=True):
            found.append(x[start:end] - x[first:last].mean(0))
        return torch.cat(found)


class Chunks(nn.Module):
    """As normalisations over virtual batches have them: how many chunks there are depends on the size."""

    def forward(self, x):
        return torch.cat([part - part.mean(0) for part in x.chunk(int(np.ceil(x.shape[0] / 4)))])


class Named(nn.Module):
    """Says the arguments' names, which differ between functions and methods."""

    def forward(self, x):
        first = [part.cumsum(0) for part in torch.split(tensor=x, split_size_or_sections=4, dim=0)]
        other = [part.cumsum(0) for part in x.split(split_size=3)]
        rows = torch.stack([row.softmax(0) for row in torch.unbind(input=x, dim=0)])
        return torch.cat(first) + torch.cat(other) + rows + torch.cat(torch.chunk(input=x, chunks=2))


class FewerChunks(nn.Module):
    """More chunks are asked for than the sample has rows."""

    def forward(self, x):
        found = []
        for part, other in zip(*(each.chunk(11, dim=0) for each in (x, x.exp())), strict=True):
            found.append(part.cumsum(0) * other)
        return torch.cat(found)


class Blocks(nn.Module):
    """The last of the blocks that a list is filled with is lower, and how low is a formula."""

    def forward(self, x):
        count = math.ceil(x.shape[0] / 4)
        found = []
        for i in range(count):
            found.append(torch.ones(min(4, x.shape[0] - i * 4), count) * i)
        return torch.cat(found) + x.sum()


PIECES = [Appended(), Listed(), After(), While(), Windows(), Chunks(), Named(), FewerChunks(), Blocks()]


@pytest.mark.parametrize("module", PIECES, ids=lambda m: type(m).__name__)
def test_pieces_of_different_sizes_are_put_together(module, tmp_path):
    check(module, tmp_path, (torch.randn(10, 8),), [(torch.randn(rows, width),) for rows, width in ((5, 7), (12, 13))])


class Written(nn.Module):
    """Each piece is written into a tensor with gaps; what follows asks for lengths below those of two pieces."""

    def forward(self, x):
        count = (x.shape[1] + 3) // 4
        pieces = nn.functional.pad(x, (0, count * 4 - x.shape[1])).view(x.shape[0], count, 4)
        made = x.new_zeros(x.shape[0], count, 5)[..., :4]
        for i in range(count):
            made[:, i] = pieces[:, i] * 2
        last = nn.functional.pad(x, (3 - x.shape[1], 0)) if x.shape[1] < 3 else x
        return made.sum((1, 2)), last[:, -3:]


def test_what_is_written_into_asks_nothing_of_sizes(tmp_path):
    lengths = (1, 2, 4, 9)
    check(Written(), tmp_path, (torch.randn(2, 5),), [(torch.randn(3, length),) for length in lengths])


class Split(nn.Module):
    def forward(self, x, lengths):
        return torch.stack([part.amax(0) for part in x.split(lengths.tolist())])


class Padded(nn.Module):
    def forward(self, x, lengths):
        parts = torch.split(x, lengths.tolist())
        return nn.utils.rnn.pad_sequence(parts, batch_first=True, padding_value=-1.0)


class PaddedFirst(nn.Module):
    def forward(self, x, lengths):
        return nn.utils.rnn.pad_sequence(list(torch.split(x, tuple(lengths.tolist()))))


class PaddedNumbers(nn.Module):
    """Those of each row that are left; torch cuts what it fills up with off to a whole number."""

    def forward(self, tokens):
        rows = [torch.unique_consecutive(row[row > 1]) for row in tokens]
        return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-1.7)


class Masked(nn.Module):
    def forward(self, x, lengths):
        return torch.segment_reduce(x * torch.arange(lengths.sum())[:, None], "sum", lengths=lengths)


@pytest.mark.parametrize("module", [Split(), Padded(), PaddedFirst(), Masked()], ids=lambda m: type(m).__name__)
def test_lengths_add_up_to_a_size(module, tmp_path):
    others = [(torch.randn(9, 3), torch.tensor([2, 4, 3])), (torch.randn(5, 3), torch.tensor([5]))]
    check(module, tmp_path, (torch.randn(7, 3), torch.tensor([3, 4])), others)


def test_whole_numbers_stay_whole_beside_what_fills_them_up(tmp_path):
    tokens = [torch.randint(0, 5, shape) for shape in ((2, 6), (5, 9), (1, 4))]
    check(PaddedNumbers(), tmp_path, (tokens[0],), [(each,) for each in tokens[1:]])


def check(module, tmp_path, sample, others):
    model = ep.export(module, sample, progress=False)
    model.save(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]
    for call in (sample, *others):
        found = session.run(None, {name: each.numpy() for name, each in zip(names, call, strict=True)})
        expected = module(*call)
        for one, other in zip(found, expected if isinstance(expected, tuple) else [expected], strict=True):
            np.testing.assert_allclose(one, other.numpy(), rtol=1e-5, atol=1e-6)
