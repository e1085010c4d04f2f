"""Operators that are made of others are set as torch sets them, each time that a program is decomposed."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from entrepot.exporters.torch.lowering import composites
from entrepot.exporters.torch.lowering.decomposing import decomposed
from entrepot.exporters.torch.running.guard import quiet
from entrepot.exporters.torch.upstream import fake_rules


class Mixed(nn.Module):
    def forward(self, x):
        return torch.nn.functional.layer_norm(x, (4,)).softmax(-1) + torch.nn.functional.silu(x).flatten(1).mean()


TABLE = dict(torch.export.default_decompositions())


@pytest.fixture(autouse=True)
def _nothing_is_remembered(monkeypatch):
    monkeypatch.setattr(composites, "_REMEMBERED", [])


def program():
    return torch.export.export(Mixed(), (torch.randn(2, 3, 4),))


def operators(found):
    return [str(node.target) for node in found.graph.nodes]


def state(known):
    return {operator: dict(operator.py_kernels) for operator in known}, dict(fake_rules)


def test_what_is_set_again_is_what_torch_sets(monkeypatch):
    with composites.decomposing(TABLE) as (rest, whole):
        first = rest, whole, {op: set(op.py_kernels) for op in whole}, set(fake_rules)

    def unasked(table):
        raise AssertionError("asked again")

    monkeypatch.setattr(composites, "split_composites", unasked)
    with composites.decomposing(TABLE) as (rest, whole):
        assert (rest, whole, {op: set(op.py_kernels) for op in whole}, set(fake_rules)) == first


def test_programs_come_out_alike_and_operators_are_left_as_they_were():
    with quiet():
        expected = operators(program().run_decompositions(dict(TABLE)))  # drops rules of torch's own (2.13)
    with composites.decomposing(TABLE) as (_, whole):
        pass
    before = state(whole)
    with quiet():
        assert [operators(decomposed(program(), TABLE)) for _ in range(3)] == [expected] * 3
    assert state(whole) == before


def test_another_table_and_other_operators_are_looked_up(monkeypatch):
    asked = []
    split = composites.split_composites
    monkeypatch.setattr(composites, "split_composites", lambda table: asked.append(table) or split(table))
    for table in (TABLE, TABLE, dict(TABLE)):
        with composites.decomposing(table):
            pass
    assert len(asked) == 2
    with torch.library._scoped_library("entrepot_composites", "DEF") as library:
        library.define("double(Tensor x) -> Tensor")
        library.impl("double", lambda x: x + x, "CompositeImplicitAutograd")
        with composites.decomposing(asked[-1]):
            pass
    assert len(asked) == 3
