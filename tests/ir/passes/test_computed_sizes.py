"""Sizes that are read, or left to a Reshape, instead of computed: see ``ReadSizes`` and ``InferSizes``."""

from __future__ import annotations

import pytest

from entrepot.ir.passes.infer_sizes import InferSizes
from entrepot.ir.passes.read_sizes import ReadSizes
from tests.ir.passes.forms import check, model
from tests.ir.passes.test_moves import cleaned, ints

INPUTS, Y = "float[n, 1, m] x, float z", "float[a, b, c] y"
NAMED = "<float[n, 1, {}] h, float[{}] e>"
TWICE = ints(t="2", o="1") + "h = Concat<axis = 2>(x, x) s = Shape<start = 2, end = 3>(x) "
COUNTED = "h = Concat(x, x) axis=2; "

READ = {
    "in a shape": (
        TWICE + "d = Mul(s, t) p = Neg(d) q = Neg(p) c = Concat<axis = 0>(o, q) e = Expand(z, c) y = Add(e, h)",
        "1, twice",
        COUNTED + "e_shape = Shape(h) end=3 start=2; e_concat = Concat([1], e_shape) axis=0; "
        "e = Expand(z, e_concat); y = Add(e, h)",
    ),
    "alone": (
        TWICE + "d = Mul(s, t) e = Expand(z, d) y = Add(e, h)",
        "twice",
        COUNTED + "e_shape = Shape(h) end=3 start=2; e = Expand(z, e_shape); y = Add(e, h)",
    ),
}
COMPUTED = {
    "by one node": TWICE + "u = Neg(s) v = Neg(u) d = Mul(s, t) e = Expand(z, d) f = Cast<to = 1>(v) "
    "g = Add(e, f) y = Add(g, h)",
    "for others, too": TWICE + "d = Mul(s, t) e = Expand(z, d) f = Cast<to = 1>(d) g = Add(e, f) y = Add(g, h)",
    "before there is a value": ints(t="2") + "s = Shape<start = 2, end = 3>(x) d = Mul(s, t) e = Expand(z, d) "
    "h = Concat<axis = 2>(x, x) y = Add(e, h)",
}


@pytest.mark.parametrize("name", READ)
def test_a_computed_size_is_read_where_a_value_has_it(name):
    body, shape, expected = READ[name]
    check(cleaned(ReadSizes()), model(body, INPUTS, Y, NAMED.format("twice", shape)), expected, sizes=(4, 1, 0))


@pytest.mark.parametrize("name", COMPUTED)
def test_other_sizes_stay_computed(name):
    check(ReadSizes(), model(COMPUTED[name], INPUTS, Y, NAMED.format("twice", "twice")), None, sizes=(4, 1))


def test_a_size_of_another_name_stays_computed():
    check(ReadSizes(), model(READ["alone"][0], INPUTS, Y, NAMED.format("other", "twice")), None, sizes=(4, 1))


def test_names_of_outputs_are_taken_for_no_sizes():
    body = TWICE + "d = Mul(s, t) e = Add(h, h) y = Expand(z, d)"
    source = model(body, INPUTS, "float[twice] y, float[a, b, c] e", "<float[n, 1, twice] h>")
    check(ReadSizes(), source, None, sizes=(4, 1))


MANY = ints(f="4", g="2", w="8") + "s = Shape<start = 0, end = 1>(x) k = Size({}) m = Mul(s, f) p = Mul(m, g) "
REST = "r = Div(k, p) c = Concat<axis = 0>({}) y = Reshape<allowzero = {}>(x, c)"
LEFT = {
    "in the middle": (
        MANY.format("x") + REST.format("s, r, f, g", 1),
        "s = Shape(x) end=1 start=0; y_shape = Concat(s, [-1], [4], [2]) axis=0; y = Reshape(x, y_shape) allowzero=1",
    ),
    "counted elsewhere": (
        "u = Relu(x) " + MANY.format("u") + REST.format("r, f, s, g", 0),
        "s = Shape(x) end=1 start=0; y_shape = Concat([-1], [4], s, [2]) axis=0; y = Reshape(x, y_shape) allowzero=0",
    ),
    "factors together": (
        MANY.format("x") + REST.format("r, s, w", 0),
        "s = Shape(x) end=1 start=0; y_shape = Concat([-1], s, [8]) axis=0; y = Reshape(x, y_shape) allowzero=0",
    ),
}


@pytest.mark.parametrize("name", LEFT)
def test_a_size_that_the_others_leave_is_left_to_the_reshape(name):
    body, expected = LEFT[name]
    rank = ", ".join("abcd"[: expected.split(") axis=0; y ")[0].split("Concat(")[1].count(",") + 1])
    check(cleaned(InferSizes()), model(body, "float[n, 3, 8] x", f"float[{rank}] y"), expected, sizes=(4, 1))


def test_other_quotients_stay():
    body = MANY.format("x") + "i = Neg(s) j = Neg(i) " + REST.format("j, r, f, g", 1)
    check(InferSizes(), model(body, "float[n, 3, 8] x", "float[a, b, c, d] y"), None, sizes=(4, 1))
