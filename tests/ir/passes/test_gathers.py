"""Single positions of an axis, one after the other: see ``GatherMoved``."""

from __future__ import annotations

import pytest

from entrepot.ir.passes.gather_moved import GatherMoved
from entrepot.ir.passes.take_parts import TakeParts
from tests.ir.passes.forms import check, model
from tests.ir.passes.test_moves import cleaned, ints

INPUTS = "float[n, 5, 4] x"
PLACES = "i = Constant<value_int = 2>() j = Constant<value_int = -1>() "
STEPS = PLACES + "t = Transpose<perm = [1, 0, 2]>(x) a = Gather(t, i) "
TAKEN = {
    "steps": (
        STEPS + "b = Gather(t, j) y = Add(a, b)",
        "a = Gather(x, 2) axis=1; b = Gather(x, -1) axis=1; y = Add(a, b)",
    ),
    "of two axes": (
        STEPS + "b = Gather<axis = 1>(t, j) c = ReduceSum(b) y = Add(a, c)",
        "a = Gather(x, 2) axis=1; b = Gather(x, -1) axis=0; c = ReduceSum(b); y = Add(a, c)",
    ),
    "a place that is kept": (
        PLACES + ints(d="-2") + "a = Gather<axis = 1>(x, j) y = Unsqueeze(a, d)",
        "y = Gather(x, [-1]) axis=1",
    ),
    "both": (STEPS + ints(d="1") + "y = Unsqueeze(a, d)", "y = Gather(x, [2]) axis=1"),
}
LEFT = {
    "read as it is": STEPS + "b = ReduceSum(t) y = Add(a, b)",
    "in another order": PLACES + "t = Transpose<perm = [2, 1, 0]>(x) y = Gather(t, i)",
    "several places": ints(p="0, 2") + "t = Transpose<perm = [1, 0, 2]>(x) y = Gather(t, p)",
    "put elsewhere": PLACES + ints(d="0") + "a = Gather<axis = 1>(x, j) y = Unsqueeze(a, d)",
    "read twice": PLACES + ints(d="1") + "a = Gather<axis = 1>(x, j) b = Unsqueeze(a, d) y = Add(a, b)",
}  # fmt: skip


@pytest.mark.parametrize("name", TAKEN)
def test_positions_are_taken_where_the_axis_lies(name):
    body, expected = TAKEN[name]
    check(cleaned(GatherMoved()), model(body, INPUTS, "float[] y"), expected, sizes=(3, 1))


@pytest.mark.parametrize("name", LEFT)
def test_what_reads_more_keeps_the_order(name):
    check(GatherMoved(), model(LEFT[name], INPUTS, "float[] y"), None, sizes=(3, 1))


def test_positions_that_are_put_together_again_are_the_value():
    body = (
        ints(i="0", j="1")
        + "a = Gather<axis = 1>(x, i) b = Gather<axis = 1>(x, j) c = Concat<axis = 1>(a, b) y = Neg(c)"
    )
    check(cleaned(TakeParts()), model(body, "float[n, 2, 4] x", "float[] y"), "y = Neg(x)", sizes=(3, 1, 0))
