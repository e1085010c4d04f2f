"""Forward substitution that is spelt out row by row is a triangular system in the file."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch
from torch import nn

import entrepot as ep
from entrepot.exporters.torch.rewriting.substitution import substitute

SIZE = 24


def solved(matrix: torch.Tensor, size: int = SIZE) -> torch.Tensor:
    for i in range(1, size):
        row = matrix[..., i, :i].clone()
        sub = matrix[..., :i, :i].clone()
        matrix[..., i, :i] = row + (row.unsqueeze(-1) * sub).sum(-2)
    return matrix


@functools.wraps(len)
def counted(values) -> int:
    """What is around a function of C has no code to look at inside."""
    return len(values)


class Attention(nn.Module):
    def forward(self, x):
        return solved(-(x @ x.transpose(-1, -2)).tril(-1) / SIZE) @ x


class Chosen(nn.Module):
    """Behind a branch on values, which is rewritten."""

    def forward(self, x):
        if x.sum() > 0:
            x = x - 1
        return solved(x / SIZE)


class Plain(nn.Module):
    def forward(self, x):
        return x * counted(x.shape)


@pytest.mark.parametrize(("module", "width"), [(Attention(), 8), (Chosen(), SIZE)], ids=["attention", "chosen"])
def test_rows_are_substituted_at_once(module, width):
    before = solved.__code__
    model = ep.export(module, torch.randn(2, SIZE, width), dynamic={"x": {0: "batch"}}, progress=False)
    assert solved.__code__ is before
    assert "_ep_steps" not in globals()
    assert model.report is not None
    assert model.report.ok
    assert sum(1 for _ in model.ir.graph.all_nodes()) < 3 * SIZE
    assert model.inputs[0].shape == ("batch", SIZE, width)


def test_functions_around_those_of_c_may_stand_beside_a_module():
    assert not hasattr(counted.__wrapped__, "__code__")
    assert ep.export(Plain(), torch.randn(2, 3), progress=False).report.ok


@pytest.mark.parametrize("size", [SIZE, 5])
def test_what_is_above_the_rows_and_beside_them_stays(size):
    matrix = torch.from_numpy(np.random.default_rng(0).standard_normal((3, SIZE, SIZE)) / SIZE)
    wanted = solved(matrix.clone(), size)
    substitute(matrix, size)
    torch.testing.assert_close(matrix, wanted)
