"""Tensors that loops write slice by slice: stacked behind the loop, the same as before after any number of turns."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir
import pytest

import entrepot as ep
from entrepot.ir.passes.stack_writes import StackWrites
from tests.ir.passes.forms import model, run

ELEMENTS = "u = Unsqueeze(h, axes) s = Shape(u) p = Expand(at, s) r = ScatterElements<axis = {axis}>(kept, p, u)"
ROWS = "u = Unsqueeze(h, axes) p = Reshape(at, square) r = ScatterND(kept, p, u)"
SQUEEZED = ELEMENTS.replace("u = Unsqueeze(h, axes)", "v = Unsqueeze(h, axes) u = Neg(v)")
NUMBERS = """
minus = Constant<value_int = -1>() one = Constant<value_int = 1>() two = Constant<value_int = 2>()
axes = Constant<value_ints = [{axis}]>() square = Constant<value_ints = [1, 1]>() much = Constant<value = float {{9}}>()
size = Shape<start = {axis}, end = {next}>(x) long = Squeeze(size) less = Sub(long, one) two_less = Sub(long, two)
three_less = Sub(less, two)
"""
FORWARD, BACKWARD, ON = "at = Identity(i)", "at = Sub(less, i)", "on = Identity(again)"
SHORT = "most = ReduceMax<keepdims = 0>(h) on = Less(most, much)"


def looped(turns: str, place: str, write: str = ELEMENTS, *, axis: int = 0, goes_on: str = ON) -> ep.Model:
    """A loop that adds up slices of ``x``, and writes what it has so far into a copy of it."""
    whole = "n, m" if axis == 0 else "m, n"
    inner = f"{place} taken = Gather<axis = {axis}>(x, i) h = Add(sum, taken) {write.format(axis=axis)} {goes_on}"
    loop = (
        f"total, y = Loop({turns}, , first, x) <body = turn (int64 i, bool again, float[m] sum, float[{whole}] kept) "
        f"=> (bool on, float[m] h, float[{whole}] r) {{ {inner} }}>"
    )
    numbers = NUMBERS.format(axis=axis, next=axis + 1)
    return model(numbers + loop, f"float[{whole}] x, float[m] first", f"float[{whole}] y, float[m] total")


def loops(source: ep.Model) -> list[Any]:
    return [node for node in source.ir.graph if node.op_type == "Loop"]


def assert_same(source: ep.Model, before: Any, longs: tuple[int, ...] = (0, 1, 2, 3, 7)) -> None:
    """On both runtimes, for an axis of several lengths."""
    axis = 0 if source.inputs[0].shape == ("n", "m") else 1
    for long in longs:
        shape = (long, 2) if axis == 0 else (2, long)
        feeds = {"x": np.arange(2.0 * long, dtype=np.float32).reshape(shape), "first": np.ones(2, np.float32)}
        wanted = run(before, feeds)
        for found in (run(source.to_proto(), feeds), list(ep.Session(source).run(feeds).values())):
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(one, other, strict=True)


STACKED = [
    ("long", FORWARD, 0),
    ("long", BACKWARD, 1),
    ("less", "at = Add(one, i)", 1),
    ("less", FORWARD, 1),
    ("two_less", "at = Add(i, one)", 2),
    ("two_less", FORWARD, 1),
    ("less", BACKWARD, 2),
    ("less", "turned = Mul(i, minus) at = Add(two_less, turned)", 2),
    ("two_less", "more = Sub(minus, three_less) back = Neg(more) at = Sub(back, i)", 3),
]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("turns", "place", "slices"), STACKED)
def test_slices_are_stacked_behind_the_loop(turns, place, slices, axis):
    source = looped(turns, place, axis=axis)
    before = source.to_proto()
    assert StackWrites()(source.ir).modified
    (loop,) = loops(source)
    assert len(loop.inputs) == 3
    assert "ScatterElements" not in [node.op_type for node in loop.attributes["body"].as_graph()]
    assert [node.op_type for node in source.ir.graph].count("Slice") == slices
    assert_same(source, before)
    assert not StackWrites()(source.ir).modified


@pytest.mark.parametrize("place", [FORWARD, BACKWARD])
@pytest.mark.parametrize("write", [ELEMENTS, ROWS, SQUEEZED])
def test_a_loop_that_ends_early_leaves_the_rest_as_it_was(place, write):
    source = looped("long", place, write, goes_on=SHORT)
    before = source.to_proto()
    assert StackWrites()(source.ir).modified
    assert len(loops(source)[0].inputs) == 3
    assert_same(source, before)


NARROW = "v = Unsqueeze(h, axes) u = Gather<axis = 1>(v, axes)"
BACK = "q = Gather<axis = {{axis}}>(kept, {place}) g = Add(h, q) "
TWICE = (
    "q = Gather<axis = {{axis}}>(kept, {place}) o = Gather<axis = {{axis}}>(kept, {other}) f = Add(h, q) g = Sub(f, o) "
)
READ = [
    ("less", "at = Add(one, i)", BACK.format(place="i"), 1),
    ("two_less", "at = Add(i, two)", BACK.format(place="i"), 2),
    ("two_less", "at = Add(i, two) b = Add(one, i)", TWICE.format(place="i", other="b"), 2),
    ("less", "at = Sub(two_less, i) b = Sub(less, i)", BACK.format(place="b"), 1),
    ("two_less", "at = Sub(three_less, i) b = Add(at, one) c = Add(b, one)", TWICE.format(place="b", other="c"), 2),
]


@pytest.mark.parametrize("goes_on", [ON, SHORT])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("turns", "place", "read", "carried"), READ)
def test_what_was_written_some_turns_before_is_carried(turns, place, read, carried, axis, goes_on):
    write = read + ELEMENTS.replace("Unsqueeze(h,", "Unsqueeze(g,")
    source = looped(turns, place, write, axis=axis, goes_on=goes_on)
    before = source.to_proto()
    assert StackWrites()(source.ir).modified
    (loop,) = loops(source)
    assert len(loop.inputs) == 3 + carried
    assert "kept" not in [value.name for value in loop.attributes["body"].as_graph().inputs]
    assert_same(source, before)
    assert not StackWrites()(source.ir).modified


KEPT = [
    ("long", "at = Identity(i) b = Sub(i, one)", BACK.format(place="b") + ELEMENTS, ON),  # there is nothing before
    ("less", "at = Add(i, one) b = Add(at, one)", BACK.format(place="b") + ELEMENTS, SHORT),  # not written yet
    ("less", "at = Add(i, one)", "q = Gather<axis = 1>(kept, i) " + ELEMENTS, SHORT),
    ("less", "at = Add(i, one)", "q = Gather(kept, axes) " + ELEMENTS, ON),
    ("long", "at = Sub(i, one)", ELEMENTS, ON),  # the last place is written first
    ("less", "at = Sub(two_less, i) w = ReduceSum<keepdims = 0>(kept)", ELEMENTS, ON),
    ("long", "at = Mul(i, i)", ELEMENTS, SHORT),
    ("less", "at = Mul(i, two)", ELEMENTS, SHORT),
    ("two", FORWARD, ELEMENTS, ON),  # more turns than places, as far as anybody knows
    ("long", "at = Add(i, one)", ELEMENTS, SHORT),
    ("long", FORWARD, ELEMENTS.replace("<axis", '<reduction = "add", axis'), ON),
    ("long", "at = Sub(three_less, i)", ELEMENTS, SHORT),
    ("long", FORWARD, ELEMENTS.replace("u = Unsqueeze(h, axes)", NARROW), ON),
    ("long", FORWARD, "r = Add(kept, h)", ON),
    ("long", FORWARD, "r = Identity(kept)", ON),
]


@pytest.mark.parametrize(("turns", "place", "write", "goes_on"), KEPT)
def test_what_is_read_or_may_lie_elsewhere_is_carried(turns, place, write, goes_on):
    source = looped(turns, place, write, goes_on=goes_on)
    assert not StackWrites()(source.ir).modified
    assert len(loops(source)[0].inputs) == 4


def test_sizes_without_names_are_not_equal():
    source = looped("long", FORWARD)
    x, first = source.ir.graph.inputs
    unknown = onnx_ir.SymbolicDim(None)
    x.shape, first.shape = onnx_ir.Shape([unknown, unknown]), onnx_ir.Shape([unknown])
    (loop,) = loops(source)
    count = onnx_ir.node("Shape", [first])
    turns = onnx_ir.node("Squeeze", [count.outputs[0]])
    source.ir.graph.insert_before(loop, [count, turns])
    loop.replace_input_with(0, turns.outputs[0])
    assert not StackWrites()(source.ir).modified
    x.shape, first.shape = onnx_ir.Shape(["m", unknown]), onnx_ir.Shape(["m"])
    assert StackWrites()(source.ir).modified


def test_a_loop_whose_last_results_are_left_out_is_left_alone():
    source = looped("long", FORWARD)
    (loop,) = loops(source)
    body = loop.attributes["body"].as_graph()
    body.outputs.append(body[-1].inputs[0])
    assert not StackWrites()(source.ir).modified
    assert len(loop.inputs) == 4
