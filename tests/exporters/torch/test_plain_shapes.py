"""Results of operators on tensors without values that torch does not compute are as it computes them."""

from __future__ import annotations

import contextlib

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import nn

from entrepot.exporters.torch.capture import blame
from entrepot.exporters.torch.capture import settings as settings_module
from entrepot.exporters.torch.capture.plain_shapes import _rules, plain_shapes
from entrepot.exporters.torch.upstream import FakeTensor, fast_shapes, layouts, shape_inference

WEIGHT, BIAS = torch.randn(5), torch.randn(5)
KINDS = {
    "one": F.relu,
    "several types": lambda x: x + x.long(),
    "whole numbers": lambda x: x.long().abs(),
    "roots of whole numbers": lambda x: x.long().sqrt(),
    "a number": lambda x: 2.5 * x - 1,
    "a number beside whole ones": lambda x: x.long() * 1.5,
    "bits": lambda x: (x > 0) & (x < 1),
    "bits of whole numbers": lambda x: x.long() & x.int(),
    "a truth": lambda x: x.eq(x.long()),
    "both are stretched": lambda x: x[:, :1] * x[:1],
    "fewer axes": lambda x: x * x[0, 0],
    "a single number": lambda x: x / x[0, 0, 0],
    "another order": lambda x: F.relu(x.transpose(0, 2)),
    "other orders": lambda x: x.transpose(0, 1) + x.permute(1, 0, 2).contiguous(),
    "pictures": lambda x: F.relu(x[None].to(memory_format=torch.channels_last)),
    "a view": lambda x: x.view(x.shape[0] * x.shape[1], 5),
    "a view of a view": lambda x: x.view(-1, 5).view(x.shape),
    "an inferred number": lambda x: x.view(x.shape[0], x.shape[1], -1, 1),
    "an inferred product": lambda x: x.view(-1) + 1,
    "an inferred part": lambda x: torch.cat([x, x], -1).view(-1, x.shape[1], 2),
    "a view with more axes": lambda x: torch.cat([x, x], -1).view(x.shape[0], -1, 2, 5).transpose(1, 2),
    "an inferred size of more": lambda x: torch.cat([x, x[:1]]).view(-1, x.shape[1] * 5),
    "a view of a sum": lambda x: torch.cat([x, x[:, :1]], 1).view(x.shape[0] * (x.shape[1] + 1), 5),
    "a view in another order": lambda x: x.transpose(0, 1).view(x.shape[1], -1, 5),
    "a view of halves": lambda x: x[: x.shape[0] // 2 * 2].view(2, -1, x.shape[1], 5),
    "a view of a part": lambda x: x[1:].view(-1, 5),
    "a view of a number": lambda x: x.sum().view(1, 1),
    "a view as a number": lambda x: x[:1, :1, :1].view(()),
    "a view of numbers": lambda x: x.long()[:2, :2].view(2, 10),
    "products": lambda x: x @ x.new_ones(5, 7),
    "chosen": lambda x: torch.where(x[:, :1] > 0, x, x[0]),
    "chosen of two types": lambda x: torch.where(x > 0, x, x.double()),
    "means": lambda x: x.mean(-1, keepdim=True),
    "sums": lambda x: x.sum((0, -1)),
    "sums of whole numbers": lambda x: x.long().sum(1),
    "a mean of all": lambda x: x.mean(dim=()),
    "means in another order": lambda x: x.transpose(0, 2).mean(1, keepdim=True),
    "means of another type": lambda x: x.mean(1, dtype=torch.float64),
    "normalised": lambda x: F.layer_norm(x, [5], WEIGHT, BIAS),
    "normalised in another order": lambda x: F.layer_norm(x.transpose(0, 1), [5], WEIGHT, BIAS),
    "normalised halves": lambda x: F.layer_norm(x.half(), [5]),
    "batches": lambda x: F.batch_norm(x.transpose(1, 2).contiguous(), BIAS, WEIGHT.abs(), WEIGHT, BIAS),
    "batches in another order": lambda x: F.batch_norm(x.transpose(1, 2), BIAS, WEIGHT.abs(), WEIGHT, BIAS),
}


class Called(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *tensors):
        return (self.function(tensors[0]),)


def captured(kind):
    dims = {(0, 0): torch.export.Dim.AUTO, (0, 1): torch.export.Dim.AUTO}
    return blame.export_flat(Called(KINDS[kind]).eval(), [torch.randn(3, 4, 5)], dims)


def described(program):
    values = [(str(node), node.meta.get("val")) for node in program.graph.nodes]
    return [
        (name, value.dtype, str(value.shape), str(value.stride()), value.device)
        for name, value in values
        if isinstance(value, FakeTensor)
    ], [str(each) for each in program.range_constraints.items()]


@pytest.mark.parametrize("kind", KINDS)
def test_a_program_is_as_torch_makes_it(kind, monkeypatch):
    plain = described(captured(kind))
    monkeypatch.setattr(settings_module, "plain_shapes", contextlib.nullcontext)
    assert plain == described(captured(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_results_are_laid_out_as_when_they_are_computed(kind):
    x = torch.randn(3, 4, 5)
    with torch.no_grad():
        made = KINDS[kind](x)
    program = captured(kind)
    (result,) = [node.meta["val"] for node in next(iter(reversed(program.graph.nodes))).args[0]]
    values = dict(zip(_symbols(program), (3, 4), strict=True))
    computed = [int(size.node.expr.subs(values)) if isinstance(size, torch.SymInt) else size for size in result.shape]
    assert (tuple(computed), result.dtype) == (tuple(made.shape), made.dtype)


def _symbols(program):
    (given,) = [node.meta["val"] for node in program.graph.nodes if node.op == "placeholder" and node.name[0] == "t"]
    return [size.node.expr for size in given.shape[:2]]


ORDERS = {
    "in order": (lambda x: x, True),
    "a single row": (lambda x: x[:, :1], False),
    "turned": (lambda x: x.transpose(0, 1), False),
    "every other": (lambda x: x[:, ::2], False),
    "repeated": (lambda x: x[:1].expand(4, -1, -1), False),
    "axes of one": (lambda x: x[:, None].transpose(1, 2).transpose(2, 3), True),
    "halves": (lambda x: x.new_empty(x.shape[0], x.shape[1] // 2, x.shape[1]), True),
}


@pytest.mark.parametrize("kind", ORDERS)
def test_the_order_of_elements_is_told_as_torch_tells_it(kind, monkeypatch):
    make, expected = ORDERS[kind]
    asked, told = [], []
    plain = layouts.is_contiguous
    monkeypatch.setattr(layouts, "is_contiguous", lambda *args: asked.append(args) or plain(*args))

    def look(x):
        made = make(x)
        before = len(asked)
        told.append((layouts.is_contiguous_or_false(made), len(asked) - before, plain(made, True)))
        return x + 1

    monkeypatch.setitem(KINDS, "looked at", look)
    captured("looked at")
    ours, questions, torchs = told[-1]
    assert ours == torchs == expected
    assert not questions or kind == "axes of one"


def test_the_plain_ones_are_not_left_to_torch():
    assert {torch.ops.aten.relu.default, torch.ops.aten.native_layer_norm.default} <= _rules().keys()
    with plain_shapes():
        assert fast_shapes()[torch.ops.aten.relu.default] is _rules()[torch.ops.aten.relu.default]


def test_torch_is_left_as_it_was():
    before = dict(fast_shapes()), layouts.is_contiguous
    with plain_shapes():
        assert layouts.is_contiguous is not before[1]
    assert (dict(fast_shapes()), layouts.is_contiguous) == before


@pytest.mark.parametrize(
    ("kind", "left"),
    [("a view", False), ("an inferred part", False), ("products", False), ("a view in another order", True)],
)
def test_views_that_fit_are_not_left_to_torch(kind, left, monkeypatch):
    asked = []
    view = torch.ops.aten.view.default
    torchs = shape_inference.op_implementations_dict[view]
    monkeypatch.setitem(
        shape_inference.op_implementations_dict, view, lambda *args: asked.append(args) or torchs(*args)
    )
    _rules.cache_clear()
    captured(kind)
    _rules.cache_clear()
    assert bool(asked) == left
