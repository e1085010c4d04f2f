"""Stacks that are regrouped, and values beside one number: see ``FlattenStacks`` and ``PadZeros``."""

from __future__ import annotations

import pytest

from entrepot.ir.passes.flatten_stacks import FlattenStacks
from entrepot.ir.passes.pad_zeros import PadZeros
from tests.ir.passes.forms import check, model
from tests.ir.passes.test_moves import cleaned, ints

INPUTS = "float[n, 3] x, float[n, 3] z"
STACK = ints(i="1") + "a = Unsqueeze(x, i) b = Unsqueeze(z, i) c = Concat<axis = 1>(a, b) "
FLAT = {
    "to rows": (
        ints(s="-1, 6") + STACK + "y = Reshape(c, s)",
        "c_flat = Concat(x, z) axis=1; y = Reshape(c_flat, [-1, 6])",
    ),
    "keeping rows": (
        ints(s="0, 6") + STACK + "y = Reshape(c, s)",
        "c_flat = Concat(x, z) axis=1; y = Reshape(c_flat, [0, 6])",
    ),
    "by its sizes": (
        ints(t="6")
        + STACK
        + "r = Shape<start = 0, end = 1>(c) s = Concat<axis = 0>(r, t) y = Reshape<allowzero = 1>(c, s)",
        "c_flat = Concat(x, z) axis=1; r = Shape(c_flat) end=1 start=0; s = Concat(r, [6]) axis=0; "
        "y = Reshape(c_flat, s) allowzero=1",
    ),
}
STACKED = {
    "along the last axis": ints(i="2", s="-1, 6")
    + "a = Unsqueeze(x, i) b = Unsqueeze(z, i) c = Concat<axis = 2>(a, b) y = Reshape(c, s)",
    "read as it is": ints(s="-1, 6") + STACK + "d = Reshape(c, s) e = ReduceSum<keepdims = 0>(c) y = Add(d, e)",
    "keeping a later size": ints(s="-1, 2, 0") + STACK + "d = Reshape(c, s) y = ReduceMean<keepdims = 0>(d, i)",
    "a part that is read": ints(s="-1, 6") + STACK + "d = Reshape(c, s) e = ReduceSum<keepdims = 0>(a) y = Add(d, e)",
}  # fmt: skip


@pytest.mark.parametrize("name", FLAT)
def test_what_is_stacked_and_regrouped_is_put_together_at_once(name):
    body, expected = FLAT[name]
    check(cleaned(FlattenStacks()), model(body, INPUTS, "float[a, b] y"), expected, sizes=(4, 1))


@pytest.mark.parametrize("name", STACKED)
def test_other_stacks_stay(name):
    check(FlattenStacks(), model(STACKED[name], INPUTS, "float[a, b] y"), None, sizes=(4, 1))


def test_a_stack_of_unknown_rank_stays():
    source = model(
        "a = Unsqueeze(x, k) c = Concat<axis = 0>(a, a) y = Relu(c)", "float[n] x, int64[m] k", "float[a, b] y"
    )
    assert not FlattenStacks()(source.ir).modified


NUMBER = "k = Constant<value_float = {}>() "
ROW = "r = Shape<start = 0, end = 1>(x) t = Concat<axis = 0>(r, o) f = Expand(k, t) "
PADDED = {
    "behind": (
        NUMBER.format("0.0") + ints(o="2") + ROW + "y = Concat<axis = 1>(x, f)", "y = Pad(x, [0, 0, 0, 2])",
    ),
    "before": (
        NUMBER.format("2.5") + ints(o="1") + ROW + "y = Concat<axis = -1>(f, x)", "y = Pad(x, [0, 1, 0, 0], y_value)",
    ),
    "regrouped": (
        NUMBER.format("0.0") + ints(o="1", i="0", s="1") + "r = Shape<start = 0, end = 1>(x) e = Expand(k, r) "
        "f = Unsqueeze(e, s) y = Concat<axis = 1>(x, f)",
        "y = Pad(x, [0, 0, 0, 1])",
    ),
    "on both sides": (
        NUMBER.format("0.0") + ints(o="1") + ROW + "g = Expand(k, t) y = Concat<axis = 1>(f, x, g)",
        "y = Pad(x, [0, 1, 0, 1])",
    ),
}  # fmt: skip
BESIDE = {
    "two numbers": NUMBER.format("0.0") + "l = Constant<value_float = 1.0>() " + ints(o="1") + ROW
    + "g = Expand(l, t) y = Concat<axis = 1>(f, x, g)",
    "as many as there are": NUMBER.format("0.0") + "t = Shape(x) f = Expand(k, t) y = Concat<axis = 0>(x, f)",
    "read elsewhere": NUMBER.format("0.0") + ints(o="1") + ROW + "c = Concat<axis = 1>(x, f) y = Add(c, f)",
    "other sizes": NUMBER.format("0.0") + ints(o="1") + "r = Shape<start = 0, end = 1>(z) t = Concat<axis = 0>(r, o) "
    "f = Expand(k, t) u = Transpose(z) y = Concat<axis = 1>(x, f)",
    "two values": "y = Concat<axis = 1>(x, z)",
}  # fmt: skip


@pytest.mark.parametrize("name", PADDED)
def test_one_number_beside_a_value_is_padding(name):
    body, expected = PADDED[name]
    shapes = "<float[n, 1] f>" if name == "regrouped" else ""
    check(cleaned(PadZeros()), model(body, "float[n, 3] x", "float[a, b] y", shapes), expected, sizes=(4, 1, 0))


@pytest.mark.parametrize("name", BESIDE)
def test_other_values_stay_beside_each_other(name):
    given = "float[n, 3] x, float[m, 3] z" if name == "other sizes" else INPUTS
    check(PadZeros(), model(BESIDE[name], given, "float[a, b] y"), None, sizes=(4, 1))
