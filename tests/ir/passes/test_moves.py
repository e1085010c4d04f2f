"""Passes over what moves, regroups or converts elements: they leave alone, or change, as onnxruntime confirms."""

from __future__ import annotations

import onnx
import onnx.parser
import pytest

import entrepot as ep
from entrepot.ir.passes.absorb_padding import AbsorbPadding
from entrepot.ir.passes.drop_idle import DropIdle
from entrepot.ir.passes.drop_unused import DropUnused
from entrepot.ir.passes.gather_rows import GatherRows
from entrepot.ir.passes.gather_slices import GatherSlices
from entrepot.ir.passes.join_moves import JoinMoves
from entrepot.ir.passes.settle_shapes import SettleShapes
from tests.ir.passes.forms import check, model

INTS = "Constant<value_ints = [{}]>()"


def ints(**named: str) -> str:
    """``s = ints(s="0, 1")``: vectors of int64."""
    return " ".join(f"{name} = {INTS.format(numbers)}" for name, numbers in named.items()) + " "


IDLE = [
    (ints(s="2, 3, 4") + "a = Reshape(x, s) y = Relu(a)", "float[2, 3, 4] x", "y = Relu(x)"),
    (ints(s="1, 3, 1") + "a = Expand(x, s) y = Relu(a)", "float[n, 3, 4] x", "y = Relu(x)"),
    ("s = Shape(x) a = Expand(x, s) y = Relu(a)", "float[2, 3] x", "s = Shape(x); y = Relu(x)"),
    (ints(r="1, 1") + "a = Tile(x, r) y = Relu(a)", "float[2, 3] x", "y = Relu(x)"),
    ("a = Flatten<axis = 1>(x) y = Relu(a)", "float[2, 3] x", "y = Relu(x)"),
    (ints(p="0, 0, 0, 0") + "a = Pad(x, p) y = Relu(a)", "float[n, 3] x", "y = Relu(x)"),
    (ints(b="0", e="9223372036854775807", i="1") + "a = Slice(x, b, e, i) y = Relu(a)", "float[n, m] x", "y = Relu(x)"),
    (ints(b="0", e="3", i="1", s="1") + "a = Slice(x, b, e, i, s) y = Relu(a)", "float[n, 3] x", "y = Relu(x)"),
    ("a = Split<axis = 1, num_outputs = 1>(x) y = Relu(a)", "float[n, 3] x", "y = Relu(x)"),
    ("k = Constant<value = float {1}>() a = Mul(k, x) y = Neg(a)", "float[n, 3] x", "y = Neg(x)"),
    ("k = Constant<value = float {1}>() a = Div(x, k) y = Neg(a)", "float[n, 3] x", "y = Neg(x)"),
    ("k = Constant<value = int64 {0}>() a = Sub(x, k) y = Neg(a)", "int64[n, 3] x", "y = Neg(x)"),
    (
        "k = Constant<value = float {0}>() a = MatMul(x, x) b = Add(k, a) y = Neg(b)",
        "float[3, 3] x",
        "a = MatMul(x, x); y = Neg(a)",
    ),
    ("k = Constant<value = float {0}>() a = Add(x, k) y = Neg(a)", "float[n, 3] x", "y = Neg(x)"),  # -0.0 equals 0.0
    (
        "k = Constant<value = float {0}>() a = Add(k, x) b = Abs(a) y = Reciprocal(b)",
        "float[n, 3] x",
        "b = Abs(x); y = Reciprocal(b)",
    ),
    (
        ints(b="-3", e="9223372036854775807", i="1") + "a = Slice(x, b, e, i) y = Relu(a)",
        "float[n, 3] x",
        "y = Relu(x)",
    ),
]

NOT_IDLE = [
    (ints(s="3, 2") + "a = Reshape(x, s) y = Relu(a)", "float[2, 3] x"),
    (ints(s="2, 1, 3") + "a = Expand(x, s) y = Relu(a)", "float[2, 3] x"),
    (ints(p="0, 0, 0, 1") + "a = Pad(x, p) y = Relu(a)", "float[n, 3] x"),
    (ints(b="0", e="9223372036854775807", i="1", s="2") + "a = Slice(x, b, e, i, s) y = Relu(a)", "float[n, 3] x"),
    (ints(b="0", e="2", i="1") + "a = Slice(x, b, e, i) y = Relu(a)", "float[n, 3] x"),
    ("k = Constant<value = float {1}>() a = Div(k, x) y = Neg(a)", "float[n, 3] x"),
    ("k = Constant<value = float {0}>() a = Add(x, k) y = Reciprocal(a)", "float[n, 3] x"),  # -0.0 + 0.0 is 0.0
    ("k = Constant<value = float {0}>() a = Add(x, k) b = Neg(a) y = Div(x, b)", "float[n, 3] x"),
    (ints(b="-2", e="9223372036854775807", i="1") + "a = Slice(x, b, e, i) y = Relu(a)", "float[n, 3] x"),
    ("k = Constant<value = float[1, 1, 1] {1}>() a = Mul(x, k) y = Neg(a)", "float[n, 3] x"),  # adds an axis
    ("a = Mul(x, one) y = Neg(a)", "float[n, 3] x"),  # a weight that may be trained
    ("k = Constant<value = float[2] {1, 1}>() a = Mul(x, k) y = Neg(a)", "float[n, 2] x"),
]


@pytest.mark.parametrize(("body", "inputs", "expected"), IDLE)
def test_moves_that_do_nothing_go(body, inputs, expected):
    kind, _, _ = inputs.partition("[")
    check(DropIdle(), model(body, inputs, f"{kind}[] y"), expected)


@pytest.mark.parametrize(("body", "inputs"), NOT_IDLE)
def test_moves_that_do_something_stay(body, inputs):
    check(DropIdle({"one"}), model(body, inputs, "float[] y", "<float[1] one = {1}>"), None)


@pytest.mark.parametrize("step", [DropIdle(), SettleShapes(), JoinMoves()])
def test_one_unknown_size_is_not_another(step):
    """Several converters write ``?`` for whatever they do not know."""
    source = model("s = Shape(k) y = Reshape(x, s)", "float[2, 3] x, float[2, 3] k", "float[2, 3] y")
    for value in (*source.ir.graph.inputs, source.ir.graph.outputs[0]):
        value.shape = type(value.shape)(["?", "?"])
    assert not step(source.ir).modified


F, D = "float[n, 3] x", "float[] y"

JOINED = [
    (
        ints(i="1") + "k = Constant<value_int = 0>() a = Gather<axis = 1>(x, k) b = Unsqueeze(a, i) y = Relu(b)",
        "float[n, 1] x",
        D,
        "y = Relu(x)",
    ),
    (
        ints(s="1, -1") + "k = Constant<value_int = -1>() a = Reshape(x, s) b = Gather(a, k) y = Relu(b)",
        "float[n] x",
        D,
        "y = Relu(x)",
    ),
    (ints(i="1") + "a = Unsqueeze(x, i) b = Squeeze(a, i) y = Relu(b)", F, D, "y = Relu(x)"),
    (ints(s="-1, 3, 1", t="-1, 1, 3") + "a = Reshape(x, s) y = Reshape(a, t)", F, D, "y = Reshape(x, [-1, 1, 3])"),
    (ints(i="0", t="0, 0, 3, 1") + "a = Unsqueeze(x, i) y = Reshape(a, t)", F, D, "y = Reshape(x, [1, -1, 3, 1])"),
    (ints(i="2") + "a = Flatten(x) y = Unsqueeze(a, i)", "float[n, m] x", D, "y = Reshape(x, [0, 0, 1])"),
    (
        "a = Transpose<perm = [1, 2, 0]>(x) y = Transpose<perm = [0, 2, 1]>(a)",
        "float[n, 3, 4] x",
        D,
        "y = Transpose(x) perm=[1, 0, 2]",
    ),
    ("a = Transpose(x) y = Transpose(a)", "float[n, 3, 4] x", D, "y = Transpose(x) perm=[0, 1, 2]"),
    ("a = Cast<to = 11>(x) y = Cast<to = 10>(a)", "float[n] x", "float16[] y", "y = Cast(x) to=10"),
    ("a = Cast<to = 7>(x) y = Cast<to = 3>(a)", "int32[n] x", "int8[] y", "y = Cast(x) to=3"),
    ("a = Cast<to = 6>(x) y = Cast<to = 1>(a)", "bool[n] x", D, "y = Cast(x) to=1"),
]

APART = [
    (
        ints(i="1") + "k = Constant<value_int = 0>() a = Gather<axis = 1>(x, k) y = Unsqueeze(a, i)",
        F,
        D,
    ),  # one of three
    (ints(k="0, 0", i="1, 3") + "a = Unsqueeze(x, i) y = Gather<axis = 1>(a, k)", F, D),  # twice
    ("a = Cast<to = 10>(x) y = Cast<to = 11>(a)", "float[n] x", "double[] y"),  # rounds
    ("a = Cast<to = 6>(x) y = Cast<to = 1>(a)", "float[n] x", D),  # truncates
    ("a = Cast<to = 1>(x) y = Cast<to = 7>(a)", "int64[n] x", "int64[] y"),
    ("a = Cast<to = 7>(x) y = Cast<to = 8>(a)", "int32[n] x", "string[] y"),  # left to whoever spells numbers
    ("a = Cast<to = 11>(x) y = Cast<to = 10>(a)", "int32[n] x", "float16[] y"),  # runtimes round this twice
    ("a = Transpose(x) b = Relu(a) c = Transpose(a) y = Add(b, c)", "float[3, 3] x", D),  # read twice
    (ints(i="0", t="3, -1") + "a = Unsqueeze(x, i) b = Relu(a) y = Reshape(b, t)", F, D),
    (ints(i="1") + "a = Unsqueeze(x, i) y = Squeeze(a, i)", F, D),  # an output that would be an input
]


def cleaned(step):
    """A pass, and what it leaves for ``DropUnused`` dropped."""

    def both(graph):
        result = step(graph)
        DropUnused()(graph)
        return result

    return both


@pytest.mark.parametrize(("body", "inputs", "outputs", "expected"), JOINED)
def test_chains_become_one_node(body, inputs, outputs, expected):
    check(cleaned(JoinMoves()), model(body, inputs, outputs), expected)


@pytest.mark.parametrize(("body", "inputs", "outputs"), APART)
def test_chains_that_round_or_are_read_in_between_stay(body, inputs, outputs):
    check(JoinMoves(), model(body, inputs, outputs), None, sizes=(2, 1))


@pytest.mark.parametrize("place", [1, -2])
def test_a_place_that_an_axis_does_not_have_stays_an_error(place):
    body = (
        ints(i="1") + f"k = Constant<value_int = {place}>() a = Gather<axis = 1>(x, k) b = Unsqueeze(a, i) y = Relu(b)"
    )
    before = model(body, "float[n, 1] x", D)
    assert not JoinMoves()(before.ir).modified


PLACES = "<int64[2, 2] k = {0, -1, 1, 1}, int64 j = {-2}>"

LOOKED_UP = [
    (ints(i="-1") + "l = Unsqueeze(k, i) y = GatherND(x, l)", "y = Gather(x, [[0, -1], [1, 1]]) axis=0"),
    (
        "t = Transpose<perm = [1, 0, 2]>(x) g = Gather<axis = 1>(t, k) y = Transpose<perm = [1, 2, 0, 3]>(g)",
        "y = Gather(x, [[0, -1], [1, 1]]) axis=0",
    ),
    ("t = Transpose<perm = [2, 1, 0]>(x) g = Gather(t, j) y = Transpose<perm = [1, 0]>(g)", "y = Gather(x, -2) axis=2"),
]

ELSEWHERE = [
    ints(i="1") + "l = Unsqueeze(k, i) y = GatherND(x, l)",  # a place for each of two axes
    ints(i="2") + "l = Unsqueeze(k, i) y = GatherND<batch_dims = 1>(x, l)",
    "t = Transpose<perm = [1, 0, 2]>(x) g = Gather<axis = 1>(t, k) y = Transpose<perm = [2, 1, 0, 3]>(g)",
    "t = Transpose<perm = [1, 0, 2]>(x) g = Gather<axis = 1>(t, j) r = Transpose(g) s = Transpose(r) y = Add(g, s)",
]


@pytest.mark.parametrize(("body", "expected"), LOOKED_UP)
def test_places_along_one_axis_are_looked_up_by_one_node(body, expected):
    check(cleaned(GatherRows()), model(body, "float[2, 3, 4] x", D, PLACES), expected)


@pytest.mark.parametrize("body", ELSEWHERE)
def test_places_of_several_axes_or_in_another_order_stay(body):
    check(GatherRows(), model(body, "float[2, 3, 4] x", D, PLACES), None)


SHAPES = [
    (
        ints(a="288") + "s = Shape<start = 0, end = 1>(x) t = Concat<axis = 0>(s, a) y = Reshape<allowzero = 1>(x, t)",
        "float[n, 8, 6, 6] x",
        "y = Reshape(x, [-1, 288])",
    ),
    (
        ints(i="0", j="1", a="2, 3")
        + "s = Shape(x) p = Gather(s, i) q = Gather(s, j) t = Concat<axis = 0>(p, q, a) y = Reshape(x, t)",
        "float[n, m, 6] x",
        "y = Reshape(x, [0, 0, 2, 3])",
    ),
    (
        "s = Shape<end = 1>(x) h = Shape<start = 1, end = 2>(x) w = Shape<start = 2>(x) a = Mul(h, w) "
        "t = Concat<axis = 0>(s, a) y = Reshape<allowzero = 1>(x, t)",
        "float[n, m, l] x",
        "y = Flatten(x) axis=1",  # [0, -1] says nothing where n is 0
    ),
    (
        ints(a="4") + "s = Shape(x) t = Concat<axis = 0>(a, s) y = Expand(x, t)",
        "float[n, m] x",
        "y = Expand(x, [4, 1, 1])",
    ),
]

COMPUTED = [
    ("s = Shape(k) y = Reshape(x, s)", "float[n, m] x, float[m, n] k", "float[m, n] y"),  # two sizes from elsewhere
    ("s = Shape(k) y = Expand(x, s)", "float[n, m] x, float[l, m] k", D),
    ("y = Reshape(x, k)", "float[n, m] x, int64[3] k", "float[a, b, c] y"),
    (  # an empty axis is told from one that is copied
        ints(a="0") + "s = Shape<end = 1>(x) t = Concat<axis = 0>(s, a) y = Reshape<allowzero = 1>(x, t)",
        "float[n, 0] x",
        "float[n, 0] y",
    ),
    (  # made to fail where two sizes differ
        ints(z="0", o="1")
        + "s = Shape<end = 1>(x) r = Shape<end = 1>(k) e = Equal(s, r) f = Not(e) i = Cast<to = 7>(f) "
        "j = Add(i, o) c = Reshape(z, j) t = Add(s, c) y = Reshape(x, t)",
        "float[n] x, float[m] k",
        "float[n] y",
    ),
    (
        ints(z="0", o="1")
        + "s = Shape<end = 1>(x) r = Shape<end = 1>(k) e = Equal(s, r) f = Not(e) i = Cast<to = 7>(f) "
        "j = Add(i, o) c = Reshape(z, j) t = Add(s, c) u = Unsqueeze(x, z) y = Reshape(u, t)",
        "float[n] x, float[m] k",
        "float[n] y",
    ),
]


@pytest.mark.parametrize(("body", "inputs", "expected"), SHAPES)
def test_sizes_that_are_passed_on_become_constants(body, inputs, expected):
    outputs = "float[p, q] y" if "Flatten" in expected else D
    check(cleaned(SettleShapes()), model(body, inputs, outputs), expected)


@pytest.mark.parametrize("step", [SettleShapes(), DropIdle(), JoinMoves()])
@pytest.mark.parametrize(("body", "inputs", "outputs"), COMPUTED)
def test_shapes_that_depend_on_something_else_stay(step, body, inputs, outputs):
    assert not step(model(body, inputs, outputs).ir).modified


SLICES = [
    (ints(b="1", e="2", i="1") + "a = Slice(x, b, e, i) y = Squeeze(a, i)", "y = Gather(x, 1) axis=1"),
    (
        ints(b="-1", e="9223372036854775807", i="-2") + "a = Slice(x, b, e, i) y = Squeeze(a, i)",
        "y = Gather(x, -1) axis=1",
    ),
    (ints(b="-2", e="-1", i="1", s="1") + "a = Slice(x, b, e, i, s) y = Squeeze(a, i)", "y = Gather(x, -2) axis=1"),
]

LONGER = [
    ints(b="0", e="2", i="1") + "a = Slice(x, b, e, i) b1 = Relu(a) y = Flatten(b1)",
    ints(b="0", e="1", i="1", j="0") + "a = Slice(x, b, e, i) y = Unsqueeze(a, j)",
    ints(b="-1", e="0", i="1") + "a = Slice(x, b, e, i) y = Flatten(a)",  # takes nothing
    ints(b="0", e="1", i="1") + "a = Slice(x, b, e, i) s = Squeeze(a, i) c = Flatten(a) d = Flatten(s) y = Add(c, d)",
]


@pytest.mark.parametrize(("body", "expected"), SLICES)
def test_one_position_is_gathered(body, expected):
    check(cleaned(GatherSlices()), model(body, "float[n, 3, 2] x", "float[n, 2] y"), expected)


@pytest.mark.parametrize("body", LONGER)
def test_other_slices_stay(body):
    check(GatherSlices(), model(body, "float[n, 3, 2] x", D), None, sizes=(2, 1))


W = "<float[2, 1, 2] w = {1, 2, 3, 4}>"
PADDED = [
    (ints(p="0, 0, 1, 0, 0, 0") + "a = Pad(x, p) y = Conv(a, w)", "y = Conv(x, w) pads=[1, 0]"),
    (
        ints(p="1, 2", i="-1") + "z = Constant<value = float {0}>() a = Pad(x, p, z, i) y = Conv<pads = [0, 3]>(a, w)",
        "y = Conv(x, w) pads=[1, 5]",
    ),
]

UNPADDED = [
    ints(p="0, 0, -1, 0, 0, 0") + "a = Pad(x, p) y = Conv(a, w)",
    ints(p="1, 0, 0, 0, 0, 0") + "a = Pad(x, p) y = Conv(a, w)",  # not where the kernel moves
    ints(p="0, 0, 1, 0, 0, 1") + """a = Pad<mode = "reflect">(x, p) y = Conv(a, w)""",
    ints(p="0, 0, 1, 0, 0, 0") + "z = Constant<value = float {2}>() a = Pad(x, p, z) y = Conv(a, w)",
    ints(p="0, 0, 1, 0, 0, 0") + """a = Pad(x, p) y = Conv<auto_pad = "SAME_UPPER">(a, w)""",
    ints(p="0, 0, 1, 0, 0, 0") + "a = Pad(x, p) b = Conv(a, w) c = ReduceSum(a) y = Add(b, c)",
]


@pytest.mark.parametrize(("body", "expected"), PADDED)
def test_convolutions_pad_themselves(body, expected):
    check(cleaned(AbsorbPadding()), model(body, "float[n, 1, 5] x", D, W), expected, sizes=(2, 1))


@pytest.mark.parametrize("body", UNPADDED)
def test_other_padding_stays(body):
    check(AbsorbPadding(), model(body, "float[n, 1, 5] x", D, W), None, sizes=(2, 1))


EVERYWHERE = [
    (DropIdle(), ints(b="0", e="9223372036854775807", i="1") + "a = Slice(x, b, e, i) {y} = Relu(a)", "Relu"),
    (JoinMoves(), "a = Transpose(x) b = Transpose(a) {y} = Relu(b)", "Transpose; Relu"),
    (
        SettleShapes(),
        ints(a="1") + "s = Shape<end = 1>(x) m = Shape<start = 1>(x) t = Concat<axis = 0>(s, a, m) {y} = Reshape(x, t)",
        "Reshape",
    ),
    (GatherSlices(), ints(b="0", e="1", i="1") + "a = Slice(x, b, e, i) {y} = Squeeze(a, i)", "Gather"),
]


@pytest.mark.parametrize(("step", "body", "expected"), EVERYWHERE)
def test_branches_and_functions_are_covered(step, body, expected):
    text = f"""<ir_version: 10, opset_import: ["": 20, "my": 1]>
        net (float[n, 3] x, bool c) => (float[n, 3] y, float[n, 3] z) {{
            y = my.f(x)
            z = If(c)<then_branch = t () => (p) {{ {body.format(y="p")} }},
                      else_branch = e () => (r) {{ r = Neg(x) }}> }}
        <domain: "my", opset_import: ["": 20]> f (x) => (y) {{ {body.format(y="y")} }}"""
    source = ep.load(onnx.parser.parse_model(text))
    assert cleaned(step)(source.ir).modified
    (function,) = source.ir.functions.values()
    (branch, *_) = source.ir.graph.subgraphs()
    for graph in (function, branch):
        assert "; ".join(node.op_type for node in graph if node.op_type != "Constant") == expected


@pytest.mark.parametrize("step", [SettleShapes(), JoinMoves(), GatherSlices()])
def test_nothing_is_written_that_an_old_opset_lacks(step):
    """Before opset 9 a Constant holds no integers, and before 11 a Gather does not count from the end."""
    body = "s = Shape(x) y = Reshape(x, s)"
    assert not step(model(body, "float[n, m] x", "float[n, m] y", opset=8, ir_version=4).ir).modified
