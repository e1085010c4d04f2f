"""Lists of numbers whose length varies, made into tensors: the file takes every length."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

import entrepot as ep


class Reversed(nn.Module):
    def forward(self, x):
        return x[:, 2:] + torch.tensor(list(range(x.shape[1] - 2))[::-1])[None].repeat(x.shape[0], 1)


class Computed(nn.Module):
    def forward(self, x):
        return x * torch.tensor([i * 0.5 for i in range(x.shape[1])])


class Places(nn.Module):
    def forward(self, x):
        return x[:, torch.tensor([i // 2 for i in range(1, x.shape[1])])]


class Types(nn.Module):
    def forward(self, x):
        steps = range(x.shape[1])
        return (
            torch.LongTensor(steps),
            torch.FloatTensor([i + 1 for i in steps]),
            torch.tensor([i > 2 for i in steps]),
            torch.tensor(range(1, x.shape[1] + 4, 2), dtype=torch.int32),
            x.new_tensor(range(x.shape[1])),
            torch.as_tensor(list(steps)[1:]),
        )


class Pooled(nn.Module):
    """Every other position, twice over, behind one for the first token."""

    def forward(self, x):
        places = list(range(x.shape[1]))
        once = [-1, *places[1:-1][::2]]
        twice = [-3] + once[1:][::2]  # noqa: RUF005 - the other way to write it
        apart = torch.arange(once[0] - places[0] + 2 * len(once), twice[0] - places[-1] - 1, -2)
        return torch.tensor(once), torch.tensor(twice + places[:2]), apart, torch.tensor(twice[1:])


class Indices(nn.Module):
    """What each row has at a place of its own, and every other column."""

    def forward(self, x):
        rows, least = range(x.shape[0]), x.argmin(1)
        shifted = x + 1
        shifted[rows, least] = 0
        return x[list(rows), least], x[:, range(0, x.shape[1], 2)], shifted, x[list(reversed(rows))]


class Lengths(nn.Module):
    def forward(self, x):
        return x.sum(1) / torch.tensor([len(row) for row in x])


class Repeated(nn.Module):
    """Repeats a size, and a number, once for each row."""

    def forward(self, x):
        scale = torch.tensor([1.5] * len(x), device=x.device)
        lengths = torch.LongTensor([x.shape[1]] * x.shape[0])
        return x.sum(1) * lengths * scale, torch.tensor([1, x.shape[0]] * x.shape[1])


@pytest.mark.parametrize(
    "module",
    [Reversed(), Computed(), Places(), Types(), Pooled(), Indices(), Lengths(), Repeated()],
    ids=lambda m: type(m).__name__,
)
def test_a_list_of_numbers_has_the_length_of_its_axis(module, tmp_path):
    sample = torch.from_numpy(np.random.default_rng(0).standard_normal((6, 6), np.float32))
    ep.export(module, (sample,), progress=False).save(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    for length in (6, 4, 9):
        x = torch.from_numpy(np.random.default_rng(length).standard_normal((length, length), np.float32))
        expected = module(x)
        results = session.run(None, {"x": x.numpy()})
        for one, other in zip(expected if isinstance(expected, tuple) else (expected,), results, strict=True):
            np.testing.assert_allclose(other, one.numpy(), rtol=1e-6, strict=True)
