"""Variables that one arm of a branch sets, for another branch on the same truth to read: the file takes both arms."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

import entrepot as ep
from entrepot.exporters.torch.rewriting.environment import aside, expression
from entrepot.exporters.torch.upstream import ConstantSource, DimDynamic, ShapeEnv

MARKS = ([0, 0, 0, 0, 0], [1, 0, 1, 1, 0], [0, 0, 0, 1, 0])


class First(nn.Module):
    """Several results at once, one of them a tuple."""

    def forward(self, x, marked):
        some = marked.any().item()
        if some:
            count, places = marked.long().sum(), marked.nonzero(as_tuple=True)
        y = x * 2
        if some:
            kept = x.new_zeros(count, x.shape[1])
            kept[:] = x[places]
            y[places] = kept - 1
        return y


class Second(nn.Module):
    """The other arm sets them, in a list and a dict; two tensors of one length that nobody knows go into one index."""

    def forward(self, x, marked):
        none = bool((marked == 0).all())
        if none:
            x = x - 1
        else:
            rows, columns = torch.outer(marked, x[0] > -9).nonzero(as_tuple=True)
            found = {"places": [rows, columns], "count": rows.shape[0]}
        y = x + 1
        if not none:
            rows, columns = found["places"]
            y[rows, columns] = x[rows, columns] * found["count"]
        return y


class Asserted(nn.Module):
    """What Python asks of sizes in an assertion depends on values; the other arm asserts what holds there alone."""

    def forward(self, x, marked):
        some = marked.any().item()
        y = x[:3]
        if some:
            y = x[marked]
        if some:
            total = y.sum(0)
            assert list(y.shape) == [marked.sum(), x.shape[1]]
        else:
            assert y.shape[0] == 3
            total = y.mean(0)
        return y * 2, total


@pytest.mark.parametrize("module", [First(), Second(), Asserted()], ids=lambda module: type(module).__name__)
def test_a_later_branch_reads_what_one_arm_has_set(module, tmp_path):
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((5, 4), np.float32))
    model = ep.export(module, (x, torch.tensor(MARKS[1]).bool()), progress=False)
    model.save(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    for marks in MARKS:
        marked = torch.tensor(marks).bool()
        expected = module(x, marked)
        found = session.run(None, {"x": x.numpy(), "marked": marked.numpy()})
        for one, other in zip(found, expected if isinstance(expected, tuple) else [expected], strict=True):
            np.testing.assert_allclose(one, other.numpy(), rtol=1e-6, atol=1e-6)


def test_what_an_arm_assumes_of_a_size_is_forgotten_after_it():
    env = ShapeEnv()
    size = env.create_unbacked_symint()
    with aside(env) as found:
        torch._check(size == 3)
        assert expression(size) == 3
        assert list(found.needed([size.node._expr]).values()) == [3]
    assert expression(size).is_Symbol


def test_a_condition_that_an_arm_met_becomes_one_of_the_program_when_it_is_met_again():
    env = ShapeEnv()
    source = ConstantSource("size")
    size = env.create_symintnode(env.create_symbol(8, source, DimDynamic.DYNAMIC, None), hint=8, source=source)
    with aside(env) as found:
        assert size == 8
    assert len(found.guards) == 1
    assert env.guards == []
    assert size == 8
    assert len(env.guards) == 1
    assert expression(size) == 8
