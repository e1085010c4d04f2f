"""Passes over reductions and negations: what is put back or undone after them, and sums of squares."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from entrepot.ir.passes.divide_by_roots import DivideByRoots
from entrepot.ir.passes.drop_negations import DropNegations
from entrepot.ir.passes.keep_axes import KeepAxes
from entrepot.ir.passes.keep_reduced import KeepReduced
from entrepot.ir.passes.negate_factors import NegateFactors
from entrepot.ir.passes.share_signs import ShareSigns
from entrepot.ir.passes.sum_squares import SumSquares
from tests.ir.passes.forms import check, model
from tests.ir.passes.test_moves import cleaned, ints

INPUTS, Y = "float[n, 3, 4] x, bool[3, 4] c", "float[] y"


KEPT = [
    (ints(a="1") + "r = ReduceMean(x, a) y = Squeeze(r, a)", "y = ReduceMean(x, [1]) keepdims=0"),
    (ints(a="2") + "r = ReduceSum<keepdims = 0>(x, a) y = Unsqueeze(r, a)", "y = ReduceSum(x, [2]) keepdims=1"),
    (ints(a="0, 2", s="3") + "r = ReduceSum(x, a) y = Reshape(r, s)", "y = ReduceSum(x, [0, 2]) keepdims=0"),
    ("r = ReduceSum(x) s = Squeeze(r) y = Neg(s)", "s = ReduceSum(x) keepdims=0; y = Neg(s)"),
    (
        ints(a="1") + "r = ArgMax<axis = 1>(x) s = Squeeze(r, a) y = Cast<to = 1>(s)",
        "s = ArgMax(x) axis=1 keepdims=0; y = Cast(s) to=1",
    ),
]

NUMBER = "k = Constant<value_float = {}>() "

SQUARES = [
    (ints(a="1") + "s = Mul(x, x) y = ReduceSum(s, a)", "y = ReduceSumSquare(x, [1])"),
    (
        NUMBER.format("2.0") + ints(a="0, 2") + "s = Pow(x, k) y = ReduceSum<keepdims = 0>(s, a)",
        "y = ReduceSumSquare(x, [0, 2]) keepdims=0",
    ),
    (ints(a="-1") + "s = Mul(x, x) r = ReduceSum(s, a) y = Sqrt(r)", "y = ReduceL2(x, [-1])"),
]

NO_SQUARES = [
    ints(a="1") + "s = Mul(x, x) r = ReduceSum(s, a) y = Add(r, s)",  # read as they are, too
    NUMBER.format("3.0") + ints(a="1") + "s = Pow(x, k) y = ReduceSum(s, a)",
    ints(a="1") + "i = Cast<to = 7>(x) s = Mul(i, i) r = ReduceSum(s, a) y = Cast<to = 1>(r)",
]

APART = [
    ints(a="1", b="0") + "r = ReduceMean<keepdims = 0>(x, a) y = Unsqueeze(r, b)",  # put elsewhere
    ints(a="1")
    + "r = ReduceMean(x, a) s = Squeeze(r, a) t = Sub(x, r) u = ReduceSum(s) y = Add(t, u)",  # read as it is, too
    ints(a="1", b="1, 2") + "r = ReduceMean(x, a) s = ReduceMean(r, b) y = Squeeze(s, a)",  # one of two
    "z = Relu(x) r = ReduceSum<noop_with_empty_axes = 1>(z) y = Unsqueeze(r, o)",  # reduces nothing
]

NEGATED = [
    ("d = Not(c) e = Not(d) y = Where(e, x, z)", "y = Where(c, x, z)"),
    ("d = Not(c) y = Where(d, x, z)", "y = Where(c, z, x)"),
    ("m = Neg(x) o = Neg(m) y = Relu(o)", "y = Relu(x)"),
    ("m = Neg(x) y = Add(z, m)", "y = Sub(z, x)"),
    ("m = Neg(x) y = Add(m, z)", "y = Sub(z, x)"),
    ("m = Neg(x) y = Sub(z, m)", "y = Add(z, x)"),
    (
        "s = ReduceSum<keepdims = 0>(z) t = Cast<to = 9>(s) f = Not(t) "
        "y = If(f) <then_branch = yes () => (float[n, 3, 4] a) { a = Relu(x) }, "
        "else_branch = no () => (float[n, 3, 4] b) { b = Exp(x) }>",
        "s = ReduceSum(z) keepdims=0; t = Cast(s) to=9; y = If(t) {a = Relu(x)} {b = Exp(x)}",
    ),
]

OTHERWISE = [
    "m = Neg(x) y = Sub(m, z)",
    "m = Neg(x) n = Neg(z) y = Mul(m, n)",
    "d = Not(c) e = Cast<to = 1>(d) y = Mul(e, x)",
]


@pytest.mark.parametrize(("body", "expected"), KEPT)
def test_reductions_keep_what_is_put_back_and_drop_what_is_taken_away(body, expected):
    check(cleaned(KeepAxes()), model(body, INPUTS, Y), expected)


@pytest.mark.parametrize("body", APART)
def test_reductions_stay_where_it_is_not_the_same(body):
    check(KeepAxes(), model(body, INPUTS, Y, "<int64[1] o = {0}>"), None, sizes=(2, 1))


@pytest.mark.parametrize(("body", "expected"), NEGATED)
def test_negations_that_are_undone_go(body, expected):
    check(cleaned(DropNegations()), model(body, INPUTS + ", float[3, 4] z", Y), expected)


@pytest.mark.parametrize("body", OTHERWISE)
def test_negations_that_say_something_stay(body):
    check(DropNegations(), model(body, INPUTS + ", float[3, 4] z", Y), None)


@pytest.mark.parametrize(("body", "expected"), SQUARES)
def test_sums_of_squares_take_one_node(body, expected):
    same = functools.partial(np.testing.assert_allclose, rtol=1e-6)
    check(cleaned(SumSquares()), model(body, INPUTS, Y), expected, sizes=(2, 1), same=same)


@pytest.mark.parametrize("body", NO_SQUARES)
def test_what_is_no_sum_of_squares_or_of_whole_numbers_stays(body):
    check(SumSquares(), model(body, INPUTS, Y), None)


ADDED = NUMBER.format("0.25") + "v = Constant<value = float[3] {1, 2, 3}>() "
ROOT = ADDED + "a = Add(z, k) s = Sqrt(a) r = Reciprocal(s) "
DIVIDED = [
    (ROOT + "y = Mul(x, r)", "a = Add(z, k); s = Sqrt(a); y = Div(x, s)"),
    (ROOT + "y = Mul(r, x)", "a = Add(z, k); s = Sqrt(a); y = Div(x, s)"),
    (
        ROOT + "t = Abs(s) p = Mul(r, x) y = Add(p, t)",
        "a = Add(z, k); s = Sqrt(a); t = Abs(s); p = Div(x, s); y = Add(p, t)",
    ),
]
MULTIPLIED = [
    ROOT + "p = Mul(x, r) y = Add(p, r)",
    ROOT + "y = Mul(r, r)",
    ROOT.replace("Sqrt(a)", "Abs(a)") + "y = Mul(x, r)",  # 1e-40 has an infinite reciprocal
    ROOT.replace("Add(z, k)", "Add(k, z)") + "y = Mul(x, r)",
    ROOT.replace("Add(z, k)", "Add(z, v)") + "y = Mul(x, r)",
    ROOT.replace("Add(z, k)", "Add(z, z)") + "y = Mul(x, r)",
]


@pytest.mark.parametrize(("body", "expected"), DIVIDED)
def test_a_root_divides(body, expected):
    same = functools.partial(np.testing.assert_allclose, rtol=3e-7)
    check(cleaned(DivideByRoots()), model(body, "float[n, 3] x, float[n, 3] z", Y), expected, same=same)


@pytest.mark.parametrize("body", MULTIPLIED)
def test_other_reciprocals_are_multiplied_with(body):
    check(DivideByRoots(), model(body, "float[n, 3] x, float[n, 3] z", Y), None)


def test_in_double_precision_reciprocals_are_multiplied_with():
    body = ROOT.replace("Add(z, k)", "Add(z, e)") + "y = Mul(x, r)"
    source = model(body, "double[n, 3] x, double[n, 3] z", "double[] y", "<double e = {0.25}>")
    check(DivideByRoots(), source, None)


FEWER = ints(a="1") + "r = ReduceSumSquare<keepdims = 0>(x, a) n = Sqrt(r) "
PUT_BACK = [
    (
        FEWER + NUMBER.format("2.0") + "m = Max(n, k) s = Unsqueeze(m, a) y = Div(x, s)",
        "r = ReduceSumSquare(x, [1]) keepdims=1; n = Sqrt(r); m = Max(n, k); y = Div(x, m)",
    ),
    (
        FEWER + "y = Unsqueeze(n, a)",
        "r = ReduceSumSquare(x, [1]) keepdims=1; y = Sqrt(r)",
    ),
    (
        ints(a="2", b="-2") + "r = ReduceSum<keepdims = 0>(x, a) n = Neg(r) s = Unsqueeze(n, a) t = Unsqueeze(n, b) "
        "y = Mul(s, t)",
        "r = ReduceSum(x, [2]) keepdims=1; n = Neg(r); t = Transpose(n) perm=[0, 2, 1]; y = Mul(n, t)",
    ),
    (
        ints(a="0", b="2", c="1") + "r = ReduceMax<keepdims = 0>(x, a) s = Unsqueeze(r, b) t = Unsqueeze(r, a) "
        "u = Unsqueeze(r, c) e = ReduceMean(s) v = Mul(e, t) y = Mul(u, v)",
        "r = ReduceMax(x, [0]) keepdims=1; s = Transpose(r) perm=[1, 2, 0]; u = Transpose(r) perm=[1, 0, 2]; "
        "e = ReduceMean(s); v = Mul(e, r); y = Mul(u, v)",
    ),
]
NOT_PUT_BACK = [
    FEWER + "s = Unsqueeze(n, a) t = ReduceMean(n) y = Div(s, t)",
    FEWER + "m = Add(n, w) s = Unsqueeze(m, a) y = Div(x, s)",
    FEWER + "s = Unsqueeze(n, a) t = Add(n, r) u = Unsqueeze(t, a) y = Mul(s, u)",
    ints(a="1", b="0") + "r = ReduceSum<keepdims = 0>(x, a) n = Neg(r) y = Unsqueeze(n, b)",
    ints(a="1, 2", b="1") + "r = ReduceSum<keepdims = 0>(x, a) n = Neg(r) y = Unsqueeze(n, b)",
]


@pytest.mark.parametrize(("body", "expected"), PUT_BACK)
def test_an_axis_that_is_put_back_later_is_kept(body, expected):
    check(cleaned(KeepReduced()), model(body, "float[n, 3, 4] x, float[4] w", Y), expected, sizes=(3, 1))


@pytest.mark.parametrize("body", NOT_PUT_BACK)
def test_other_reductions_keep_no_axis(body):
    check(KeepReduced(), model(body, "float[n, 3, 4] x, float[4] w", Y), None, sizes=(3, 1))


NEGATED_FACTORS = [
    (NUMBER.format("2.0") + "m = Neg(x) y = Div(m, k)", "y = Div(x, y_factor)"),
    (NUMBER.format("2.0") + "m = Neg(x) y = Mul(k, m)", "y = Mul(y_factor, x)"),
    (NUMBER.format("2.0") + "m = Neg(x) p = Mul(z, k) y = Div(m, p)", "p = Mul(z, p_factor); y = Div(x, p)"),
    (NUMBER.format("2.0") + "m = Neg(x) p = Div(k, z) y = Mul(p, m)", "p = Div(p_factor, z); y = Mul(p, x)"),
]
LEFT_NEGATED = [
    "m = Neg(x) y = Div(m, z)",
    NUMBER.format("2.0") + "m = Neg(x) p = Mul(m, k) y = Add(p, m)",
    NUMBER.format("2.0") + "m = Neg(x) p = Mul(z, k) q = Div(m, p) y = Add(q, p)",
    "m = Neg(x) y = Mul(m, w)",
]


@pytest.mark.parametrize(("body", "expected"), NEGATED_FACTORS)
def test_a_number_is_negated_instead_of_what_is_multiplied(body, expected):
    check(cleaned(NegateFactors()), model(body, "float[n, 3, 4] x, float[n, 3, 4] z", Y), expected)


@pytest.mark.parametrize("body", LEFT_NEGATED)
def test_other_products_are_of_what_was_negated(body):
    source = model(body, "float[n, 3, 4] x, float[n, 3, 4] z", Y, "<float w = {2}>")
    check(NegateFactors(["w"]), source, None, sizes=(3, 1))


HALVES = (
    "p, q = Split<axis = 2, num_outputs = 2>(x) r, o = Split<axis = 2, num_outputs = 2>(z) "
    "m = Neg(q) a = Concat<axis = {0}>(m, p) n = Neg({1}) b = Concat<axis = {2}>(n, r) "
)
SPLIT = "p, q = Split(x) axis=2 num_outputs=2; r, o = Split(z) axis=2 num_outputs=2; "
SIGNS = [
    (
        HALVES.format(2, "o", -1) + "c = Mul(a, s) d = Mul(s, b) y = Add(c, d)",
        SPLIT + "a = Concat(q, p) axis=2; b = Concat(o, r) axis=-1; s_turned = Mul(s, c_signs); "
        "c = Mul(a, s_turned); d = Mul(s_turned, b); y = Add(c, d)",
    ),
    (
        HALVES.format(1, "o", 1) + "c = Mul(a, s) d = Mul(b, s) y = Add(c, d)",
        SPLIT + "a = Concat(q, p) axis=1; b = Concat(o, r) axis=1; s_turned = Mul(s, c_signs); "
        "c = Mul(a, s_turned); d = Mul(b, s_turned); y = Add(c, d)",
    ),
]
STACKED = (
    "p, q = Split<axis = 2, num_outputs = 2>(x) r, o = Split<axis = 2, num_outputs = 2>(z) "
    "m = Neg(q) u = Unsqueeze(m, e) v = Unsqueeze(p, e) a = Concat<axis = {0}>(u, v) f = Reshape(a, flat) "
    "n = Neg(o) i = Unsqueeze(n, e) j = Unsqueeze(r, e) b = Concat<axis = {0}>(i, j) g = Reshape(b, flat) "
    "c = Mul(f, s) d = Mul(s, g) y = Add(c, d)"
)
ALTERNATING = (
    "p, q = Split(x) axis=2 num_outputs=2; r, o = Split(z) axis=2 num_outputs=2; "
    "u = Unsqueeze(q, [3]); v = Unsqueeze(p, [3]); a = Concat(u, v) axis=3; f = Reshape(a, {0}); "
    "i = Unsqueeze(o, [3]); j = Unsqueeze(r, [3]); b = Concat(i, j) axis=3; g = Reshape(b, {0}); "
    "s_turned = Mul(s, c_signs); c = Mul(f, s_turned); d = Mul(s_turned, g); y = Add(c, d)"
)
SIGNS += [
    (ints(e="3", flat="0, 3, 4") + STACKED.format(3), ALTERNATING.format("[0, 3, 4]")),
    (ints(e="3", flat="-1, 4") + STACKED.format(-1), ALTERNATING.replace("axis=3", "axis=-1").format("[-1, 4]")),
]
NO_SIGNS = [
    ints(e="3", flat="0, 4, 3") + STACKED.format(3),
    ints(e="2", flat="0, 3, 4") + STACKED.format(2),
    ints(e="3", flat="2, -1") + STACKED.format(3),
    HALVES.format(2, "o", 2) + "y = Mul(a, s)",
    HALVES.format(2, "o", 2) + "c = Mul(a, s) d = Add(s, b) y = Add(c, d)",
    HALVES.format(2, "o", 2) + "c = Mul(a, s) d = Mul(s, b) e = Add(c, d) y = Add(e, a)",
    HALVES.format(2, "o", 2) + "t = Abs(s) c = Mul(a, s) d = Mul(t, b) y = Add(c, d)",
    HALVES.format(2, "o", 2) + "e = Concat<axis = 2>(n, n) c = Mul(a, s) d = Mul(s, b) f = Add(c, d) y = Add(e, f)",
    HALVES.format(0, "o", 0) + "c = Mul(a, s) d = Mul(s, b) y = Add(c, d)",
]


@pytest.mark.parametrize(("body", "expected"), SIGNS)
def test_a_factor_is_negated_once(body, expected):
    check(cleaned(ShareSigns()), model(body, "float[n, 3, 4] x, float[n, 3, 4] z, float[1] s", Y), expected)


@pytest.mark.parametrize("body", NO_SIGNS)
def test_parts_stay_negated_where_that_takes_no_more_nodes_or_others_read_them(body):
    check(ShareSigns(), model(body, "float[n, 3, 4] x, float[n, 3, 4] z, float[1] s", Y), None)
