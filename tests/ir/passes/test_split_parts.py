"""Parts that make up a whole are one Split, as onnxruntime confirms."""

from __future__ import annotations

import pytest

from entrepot.ir.passes.split_columns import SplitColumns
from entrepot.ir.passes.split_parts import SplitParts
from entrepot.ir.passes.take_parts import TakeParts
from tests.ir.passes.forms import check, model
from tests.ir.passes.test_moves import cleaned, ints

X = "float[n, 5] x"
ENDS = ints(o="0", b="2", c="3", e="5", m="-1", l="9223372036854775807", i="1", r="0")
WHOLE = [
    ("p = Slice(x, o, b, i) q = Slice(x, b, e, i) y = Concat<axis = 1>(q, p)", "p, q = Split(x, [2, 3]) axis=1; "),
    ("q = Slice(x, b, l, m) p = Slice(x, o, b, i) y = Concat<axis = 1>(q, p)", "p, q = Split(x, [2, 3]) axis=1; "),
    (  # another one stays
        "q = Slice(x, c, e, i) s = Slice(x, o, c, i) t = Slice(x, b, e, i) p = Slice(x, b, c, i) u = Slice(x, o, b, i) "
        "y = Concat<axis = 1>(q, p, s, t, u)",
        "u, p, q = Split(x, [2, 1, 2]) axis=1; s = Slice(x, [0], [3], [1]); t = Slice(x, [2], [5], [1]); ",
    ),
]
APART = [
    "p = Slice(x, o, b, i) q = Slice(x, c, e, i) y = Concat<axis = 1>(q, p)",  # without the third
    "p = Slice(x, o, b, i) q = Slice(x, b, c, i) y = Concat<axis = 1>(q, p)",  # without the last two
    "p = Slice(x, o, c, i) q = Slice(x, b, e, i) y = Concat<axis = 1>(q, p)",  # the third twice
    "p = Slice(x, o, i, r) q = Slice(x, i, l, r) y = Concat<axis = 0>(q, p)",  # of a size that is not known
    "p = Slice(x, o, b, i) z = Neg(x) q = Slice(z, b, e, i) y = Concat<axis = 1>(q, p)",
    "p = Slice(x, o, e, i, b) q = Slice(x, i, e, i, b) y = Concat<axis = 1>(q, p)",  # every other one
    "p = Slice(x, o, e, i) y = Neg(p)",
    "t = Shape(x) p = Slice(t, o, i, o) q = Slice(t, i, b, o) s = Concat<axis = 0>(q, p) y = Cast<to = 1>(s)",
]


@pytest.mark.parametrize(("body", "split"), WHOLE)
def test_parts_that_make_up_a_whole_are_split(body, split):
    last = body[body.rindex("y =") :].replace("<axis = 1>", "") + " axis=1"
    check(cleaned(SplitParts()), model(ENDS + body, X, "float[] y"), split + last)


@pytest.mark.parametrize("body", APART)
def test_other_parts_stay_slices(body):
    check(SplitParts(), model(ENDS + body, X, "float[] y"), None)


def test_old_opsets_keep_slices():
    old = model(ENDS + WHOLE[0][0], X, "float[] y", opset=12)
    assert not SplitParts()(old.ir).modified


def test_a_part_may_be_an_output():
    both = model(ENDS + "p = Slice(x, o, b, i) q = Slice(x, b, e, i)", X, "float[n, 3] q, float[n, 2] p")
    check(cleaned(SplitParts()), both, "p, q = Split(x, [2, 3]) axis=1")


def test_bodies_are_split_too():
    body = (
        ENDS + "t = Constant<value_int = 1>() k = Cast<to = 9>(t) y = If(k) <then_branch = g () => (float[n, 5] v) {"
        "p = Slice(x, o, b, i) q = Slice(x, b, e, i) v = Concat<axis = 1>(q, p) }, "
        "else_branch = h () => (float[n, 5] w) { w = Identity(x) }>"
    )
    changed = model(body, X, "float[n, 5] y")
    assert SplitParts()(changed.ir).modified


READ = "a = Slice(x, o, c, i) p = Slice(a, o, b, i) q = Slice(a, b, c, i) "


def test_parts_of_what_nothing_else_reads_are_taken_from_the_whole():
    check(
        cleaned(TakeParts()),
        model(ENDS + READ + "y = Concat<axis = 1>(q, p)", X, "float[] y"),
        "p = Slice(x, [0], [2], [1]); q = Slice(x, [2], [3], [1]); y = Concat(q, p) axis=1",
    )


@pytest.mark.parametrize("other", ["r = Neg(a)", "r = Slice(a, o, i, k)"])
def test_parts_of_what_stays_are_taken_from_there(other):
    body = ENDS.replace("r =", "k =") + READ + other + " y = Concat<axis = 1>(q, p) "
    check(TakeParts(), model(body, X, "float[] y, float[] r"), None)


PAIRS = ints(o="0", i="1", two="2", four="4", big="99", last="-1", flat="0, 4")
EVEN, ODD = "p = Slice(x, o, big, {0}, two) ", "q = Slice(x, i, big, {0}, two) "
COLUMNS = EVEN + ODD + "u = Unsqueeze(p, {1}) v = Unsqueeze(q, {1}) "
STACK = "c = Concat<axis = 2>(v, u) y = Reshape(c, flat)"
SPLIT = "x_columns = Reshape(x, [0, 2, 2]); p_column, q_column = Split(x_columns, [1, 1]) axis=2; "


@pytest.mark.parametrize("axes", [("i", "two"), ("last", "last")])
def test_pairs_that_become_columns_are_split(axes):
    expected = SPLIT + "c = Concat(q_column, p_column) axis=2; y = Reshape(c, [0, 4])"
    body = PAIRS + COLUMNS.format(*axes) + STACK
    check(cleaned(SplitColumns()), model(body, "float[n, 4] x", "float[] y"), expected)


def test_a_column_that_is_taken_twice_is_split_off_once():
    body = PAIRS + COLUMNS.format("i", "two") + "w = Unsqueeze(p, last) c = Concat<axis = 2>(v, u, w) y = Neg(c)"
    expected = SPLIT + "c = Concat(q_column, p_column, p_column) axis=2; y = Neg(c)"
    check(cleaned(SplitColumns()), model(body, "float[n, 4] x", "float[] y"), expected)


OTHER_PAIRS = {
    "another axis": COLUMNS.format("i", "i") + "y = Concat<axis = 1>(v, u)",
    "rows": COLUMNS.format("o", "two") + "y = Concat<axis = 2>(v, u)",
    "only one of them": EVEN.format("i") + "y = Unsqueeze(p, two)",
    "read as it is": COLUMNS.format("i", "two")
    + STACK.replace("y =", "f =")
    + " e = Concat<axis = 1>(p, q) y = Mul(e, f)",
    "not all": COLUMNS.format("i", "two").replace("big", "four", 1) + STACK,
}


@pytest.mark.parametrize("name", OTHER_PAIRS)
def test_other_pairs_stay_slices(name):
    given = "float[5, 5] x" if name == "not all" else "float[4, 4] x"
    check(SplitColumns(), model(PAIRS + OTHER_PAIRS[name], given, "float[] y"), None)
