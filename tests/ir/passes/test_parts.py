"""Passes that take from parts, broadcast without copies, and bound with one node, as onnxruntime confirms."""

from __future__ import annotations

import numpy as np
import onnx_ir
import pytest

import entrepot as ep
from entrepot.ir.passes.clip_bounds import ClipBounds
from entrepot.ir.passes.let_broadcast import LetBroadcast
from entrepot.ir.passes.share_sizes import ShareSizes
from entrepot.ir.passes.take_parts import TakeParts
from tests.ir.passes.forms import check, model
from tests.ir.passes.test_moves import cleaned, ints

X, Z = "float[n, 3] x, float[n, 4] z", "float[] y"
BOTH = "c = Concat<axis = 1>(x, z) "

APART = (
    "k = Constant<value_int = 0>() l = Constant<value_int = 1>() m = Constant<value_ints = [-1]>() "
    "v = Constant<value_ints = [2]>() e = Constant<value_ints = [0]>() o = Constant<value_ints = [1]>() "
    "w = Slice(x, e, v, o) p = Gather<axis = -1>(w, k) q = Gather<axis = 1>(w, l) "
    "a = Unsqueeze(p, m) b = Unsqueeze(q, o) c = Concat<axis = 1>({first}, {last}) y = Exp(c)"
)
TAKEN = [
    (BOTH + ints(b="0", e="3", i="1") + "a = Slice(c, b, e, i) y = Neg(a)", "y = Neg(x)"),
    (BOTH + ints(b="3", e="9223372036854775807", i="-1") + "a = Slice(c, b, e, i) y = Neg(a)", "y = Neg(z)"),
    (BOTH + ints(b="4", e="-1", i="1") + "y = Slice(c, b, e, i)", "y = Slice(z, [1], [3], [1])"),
    (
        "c = Concat<axis = 1>(x, z, x) " + ints(b="3", e="10", i="1") + "y = Slice(c, b, e, i)",
        "y = Concat(z, x) axis=1",
    ),
    (
        ints(b="1", e="4", d="-2", f="3", i="1") + "a = Slice(z, b, e, i) y = Slice(a, d, f, i)",
        "y = Slice(z, [2], [4], [1])",
    ),
    (BOTH + "y = Concat<axis = -1>(z, c)", "y = Concat(z, x, z) axis=1"),
    (BOTH + ints(b="5", e="5", i="1") + "a = Slice(c, b, e, i) y = Concat<axis = 1>(a, c)", "y = Concat(x, z) axis=1"),
    (
        ints(i="1", p="-1") + "m = Neg(x) a = Unsqueeze(x, i) b = Unsqueeze(m, i) c = Concat<axis = 1>(a, b) "
        "k = Constant<value_int = -1>() d = Gather<axis = 1>(c, k) y = Neg(d)",
        "m = Neg(x); y = Neg(m)",
    ),
    (
        ints(b="1", e="3", i="-1") + "a = Slice(z, b, e, i) k = Constant<value_int = -1>() y = Gather<axis = 1>(a, k)",
        "y = Gather(z, 2) axis=1",
    ),
    (
        ints(b="1", e="3", i="-1") + "a = Slice(z, b, e, i) k = Constant<value_int = 1>() y = Gather<axis = -1>(a, k)",
        "y = Gather(z, 2) axis=1",
    ),
    (
        ints(b="0", m="1", e="3", i="1")
        + "p = Slice(x, b, m, i) q = Slice(x, m, e, i) c = Concat<axis = 1>(p, q) y = Exp(c)",
        "y = Exp(x)",
    ),
    (APART.format(first="a", last="b"), "w = Slice(x, [0], [2], [1]); y = Exp(w)"),
    (  # rows that are written one by one
        ints(f="0", o="1", p="2", e="9223372036854775807")
        + "u = Slice(x, f, o, o) r = Neg(u) s = Slice(x, o, e, o) c = Concat<axis = 1>(r, s) "
        "t = Slice(c, f, o, o) w = Exp(u) v = Slice(c, p, e, o) y = Concat<axis = 1>(t, w, v)",
        "u = Slice(x, [0], [1], [1]); r = Neg(u); w = Exp(u); v = Slice(x, [2], [3], [1]); y = Concat(r, w, v) axis=1",
    ),
]

WHOLE = [
    ints(b="0", m="1", e="3", i="1") + "p = Slice(x, b, m, i) q = Slice(x, m, e, i) y = Concat<axis = 1>(q, p)",
    ints(b="0", m="2", i="1") + "p = Slice(z, b, m, i) k = Constant<value_int = 3>() l = Gather<axis = 1>(z, k) "
    "q = Unsqueeze(l, i) y = Concat<axis = 1>(p, q)",  # without the third
    APART.format(first="b", last="a"),
    APART.format(first="a", last="a"),
    BOTH + ints(b="2", e="4", i="1") + "y = Slice(c, b, e, i)",  # of two parts
    BOTH + ints(b="0", e="3", i="1", s="2") + "y = Slice(c, b, e, i, s)",
    "c = Concat<axis = 0>(x, x) " + ints(b="0", e="1", i="0") + "y = Slice(c, b, e, i)",  # sizes that are not known
    BOTH + "a = Neg(c) b = Concat<axis = 1>(c, x) d = ReduceSum(b) y = Add(a, d)",  # read twice
    "c = Concat<axis = 0>(x, x) y = Concat<axis = 1>(c, c)",
    ints(i="0", p="0") + "a = Unsqueeze(x, i) b = Concat<axis = 0>(a, a) y = Gather<axis = 1>(b, p)",  # another axis
]


@pytest.mark.parametrize(("body", "expected"), TAKEN)
def test_what_is_taken_from_a_whole_is_taken_from_its_parts(body, expected):
    check(cleaned(TakeParts()), model(body, X, Z), expected)


@pytest.mark.parametrize(("count", "expected"), [(2, "y = Exp(v)"), (3, None)])
def test_all_numbers_of_a_vector_are_the_vector(count, expected):
    body = (
        "k = Constant<value_int = 0>() l = Constant<value_int = 1>() m = Constant<value_ints = [-1]>() "
        "p = Gather(v, k) q = Gather(v, l) a = Reshape(p, m) b = Reshape(q, m) c = Concat<axis = 0>(a, b) y = Exp(c)"
    )
    check(cleaned(TakeParts()), model(body, f"float[{count}] v", "float[2] y"), expected)


@pytest.mark.parametrize("body", WHOLE)
def test_wholes_are_read_where_parts_do_not_suffice(body):
    check(TakeParts(), model(body, X, Z), None, sizes=(2, 1))


@pytest.mark.parametrize("place", [2, -3])
def test_a_place_behind_a_part_stays_an_error(place):
    body = ints(b="1", e="3", i="-1") + f"k = Constant<value_int = {place}>() "
    before = model(body + "a = Slice(z, b, e, i) y = Gather<axis = 1>(a, k)", X, Z)
    TakeParts()(before.ir)
    assert [node.op_type for node in before.ir.graph][-2:] == ["Slice", "Gather"]


ONE = "k = Constant<value = float {1}>() "
NARROW = [
    ("s = Shape(x) w = Expand(k, s) y = Add(x, w)", "y = Add(x, k)"),
    ("s = Shape(x) w = Expand(k, s) b = Less(x, k) y = Where(b, w, x)", "b = Less(x, k); y = Where(b, k, x)"),
    (ints(s="4, 1, 3") + "w = Expand(k, s) y = Add(x, w)", None),  # an axis that x lacks
    (ints(t="3, 3") + "w = Expand(v, t) y = MatMul(x, w)", None),
    ("s = Shape(x) w = Expand(k, s) y = Relu(w)", None),
    (
        "s = Shape(x) w = Expand(v, s) a = Exp(w) b = Mul(a, w) c = Clip(b, k) d = Pow(c, k) y = Sub(d, x)",
        "a = Exp(v); b = Mul(a, v); c = Clip(b, k); d = Pow(c, k); y = Sub(d, x)",
    ),
    ("s = Shape(x) w = Expand(k, s) a = Exp(w) b = Add(x, a) c = Softmax(a) y = Mul(b, c)", None),
    (
        "s = Shape(x) w = Expand(k, s) a = Exp(w) b = Neg(w) c = Softmax(b) y = Sum(x, a, c)",
        "s = Shape(x); w = Expand(k, s); a = Exp(k); b = Neg(w); c = Softmax(b); y = Sum(x, a, c)",
    ),
    ("s = Shape(x) w = Expand(k, s) a = Exp(w) y = Mul(a, w)", None),
    (  # one of two is wide
        ints(s="5, 3") + "w = Expand(v, s) t = Expand(v, s) a = Exp(w) b = Exp(t) c = Add(a, b) y = Softmax(c)",
        "t = Expand(v, [5, 3]); a = Exp(v); b = Exp(t); c = Add(a, b); y = Softmax(c)",
    ),
]


@pytest.mark.parametrize(("body", "expected"), NARROW)
def test_operators_broadcast_without_a_copy(body, expected):
    inputs = "float[n, 3] x, float[3] v" if "Expand(v, s)" in body else "float[n, 3] x, float[3, 1] v"
    outputs = "float[n, 3] y" if expected and "Concat" not in body else Z
    check(cleaned(LetBroadcast()), model(ONE + body, inputs, outputs), expected, sizes=(3, 1))


@pytest.mark.parametrize(
    ("wide", "product", "expected"),
    [
        ("n, 3, 3", "MatMul(x, w)", "y = MatMul(x, v)"),
        ("n, 3, 3", "MatMul(w, x)", "y = MatMul(v, x)"),
        ("m, n, 3, 3", "MatMul(x, w)", None),  # an axis that x lacks
        ("n, 3, 3", "MatMul(w, w)", None),
        ("n, 3, 3", "MatMul(w, k)", None),
    ],
)
def test_matrices_are_not_repeated_for_a_product(wide, product, expected):
    inputs = f"float[n, 3, 3] x, float[{wide}] u, float[3, 3] v, float[3] k"
    body = f"s = Shape(u) w = Expand(v, s) y = {product}"
    result = "n, 3" if "k" in product else wide
    check(cleaned(LetBroadcast()), model(body, inputs, f"float[{result}] y"), expected, sizes=(3, 1))


def test_an_expand_stays_where_sizes_are_not_known_to_be_equal():
    body = "s = Shape(k) w = Expand(x, s) y = Add(x, w)"
    check(LetBroadcast(), model(body, "float[1, 3] x, float[n, 3] k", Z), None, sizes=(2, 1))


SIZES = [
    (
        "a = ReduceMax<axes = [1], keepdims = 0>(x) s = Shape<start = 0, end = 1>(a) y = Expand(k, s)",
        "s = Shape(x) end=1 start=0; y = Expand(k, s)",
    ),
    (
        "a = Transpose(x) s = Shape<start = -1>(a) y = Expand(k, s)",
        "s = Shape(x) end=1 start=0; y = Expand(k, s)",
    ),
    ("s = Shape<start = 0, end = 1>(x) y = Expand(k, s)", None),
    (
        "p = Shape<end = 1>(a) q = Shape<end = 1>(b) s = Concat<axis = 0>(p, q) y = Expand(k, s)",
        "a = Concat(x, x) axis=0; p = Shape(a) end=1; q = Shape(a) end=1 start=0; "
        "s = Concat(p, q) axis=0; y = Expand(k, s)",
    ),
    ("a = Concat<axis = 0>(x, x) s = Shape<start = 0, end = 1>(a) y = Expand(k, s)", None),  # not called anything
    (
        "a = Neg(x) b = Exp(x) s = Size(a) t = Size(b) u = Add(s, t) y = CastLike(u, k)",
        "a = Neg(x); s = Size(a); t = Size(a); u = Add(s, t); y = CastLike(u, k)",
    ),
    ("s = Size(x) t = Size(z) u = Max(s, t) y = CastLike(u, k)", None),
    ("s = Shape<end = 1>(x) r = Shape<end = 1>(z) t = Max(s, r) y = Expand(k, t)", None),  # which may be a check
]


@pytest.mark.parametrize(("body", "expected"), SIZES)
def test_sizes_of_inputs_are_read_from_them(body, expected):
    twice = "a = Concat<axis = 0>(x, x) b = Neg(a) " if "q" in body else ""
    source = model(ONE + twice + body, X, Z, opset=17)
    for node in source.ir.graph if twice else ():
        if node.op_type in ("Concat", "Neg"):
            node.outputs[0].shape = onnx_ir.Shape(["2 * n", 3] if node.outputs[0].name in "ab" else [2])
    check(cleaned(ShareSizes()), source, expected, sizes=(2, 1))


ENDS = "l = Constant<value = float {-1}>() h = Constant<value = float {2}>() "
CLIPPED = [
    ("a = Max(x, l) y = Min(a, h)", "y = Clip(x, l, h)"),
    ("a = Min(h, x) y = Max(l, a)", "y = Clip(x, l, h)"),
    ("a = Max(x, h) y = Min(a, l)", "y = Clip(x, h, l)"),  # the upper one comes last
    ("a = Min(x, l) y = Max(a, h)", None),
    ("a = Max(x, l) y = Min(a, w)", None),  # a weight
    ("a = Max(x, l) y = Min(a, x)", None),
    ("a = Max(x, l) b = Min(a, h) y = Add(a, b)", None),
    ("a = Max(x, l) y = Min(a, h, x)", None),
]


@pytest.mark.parametrize(("body", "expected"), CLIPPED)
def test_two_bounds_are_one_node(body, expected):
    source = model(ENDS + body, "float[n, 3] x", Z, "<float w = {1}>")
    check(cleaned(ClipBounds({"w"})), source, expected)


def test_what_is_not_a_number_stays_so():
    source = model(ENDS + "a = Max(x, l) y = Min(a, h)", "float[4] x", "float[4] y")
    assert ClipBounds()(source.ir).modified
    found = ep.Session(source, providers=["onnxruntime"]).run({"x": np.array([np.nan, -np.inf, np.inf, 0], np.float32)})
    np.testing.assert_array_equal(found["y"], np.array([np.nan, -1, 2, 0], np.float32))
