"""Passes: what they change and what they leave alone, as text; and that onnxruntime computes the same afterwards."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest

import entrepot as ep
from entrepot.ir.passes.drop_idle import DropIdle
from entrepot.ir.passes.drop_unused import DropUnused
from entrepot.ir.passes.fold_constants import FoldConstants
from entrepot.ir.passes.merge_repeated import MergeRepeated
from entrepot.parity.feeds import generate
from entrepot.runtime.planning.constants import evaluate
from tests.ir.passes.forms import X, Y, model, run, text_of


def check(step, source, expected):
    """The graph is as expected, the outputs and what they hold are as before, and a second time changes nothing."""
    feeds, before = generate(source), source.to_proto()
    assert step(source.ir).modified == (expected is not None)
    assert text_of(source.ir.graph) == (expected or text_of(ep.load(before).ir.graph))
    after = source.to_proto()
    onnx.checker.check_model(after, full_check=True)
    assert [item.name for item in after.graph.output] == [item.name for item in before.graph.output]
    for old, new in zip(run(before, feeds), run(after, feeds), strict=True):
        np.testing.assert_array_equal(old, new)
    assert not step(source.ir).modified


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("a = Identity(x) y = Relu(a)", "y = Relu(x)"),
        ("a = Identity(x) b = Identity(a) y = Add(a, b)", "y = Add(x, x)"),
        ("a = Relu(x) y = Identity(a)", "y = Relu(x)"),
        ("a = Relu(x) b = Neg(a) c = Add(a, b) y = Identity(c)", "a = Relu(x); b = Neg(a); y = Add(a, b)"),
        ("a = Dropout(x) y = Relu(a)", "y = Relu(x)"),
        ("a = Cast<to = 1>(x) y = Relu(a)", "y = Relu(x)"),
        ("a = Transpose<perm = [0, 1]>(x) y = Relu(a)", "y = Relu(x)"),
        ("a = Concat<axis = 1>(x) b = Sum(a) c = Max(b) y = Relu(c)", "y = Relu(x)"),
        (
            """k = Identity(x) c = Constant<value = bool {1}>()
               y = If(c)<then_branch = t () => (p) { q = Identity(k) p = Neg(q) },
                         else_branch = e () => (r) { r = Identity(k) }>""",
            "c = Constant(); y = If(c) {p = Neg(x)} {r = Identity(x)}",
        ),
    ],
)  # fmt: skip
def test_idle_nodes_go(body, expected):
    check(DropIdle(), model(body), expected)


@pytest.mark.parametrize(
    "body",
    [
        "y = Identity(x)",  # an output that is an input under another name
        "a = Cast<to = 11>(x) b = Exp(a) y = Cast<to = 1>(b)",
        "a = Transpose(x) b = Neg(a) y = Transpose<perm = [1, 0]>(b)",
        "a, m = Dropout(x) n = Cast<to = 1>(m) y = Add(a, n)",
        "a = Concat<axis = 0>(x, x) b, c = Split<num_outputs = 2>(a) y = Max(b, c)",
    ],
)
def test_nodes_that_do_something_stay(body):
    check(DropIdle(), model(body), None)


def test_a_scalar_output_stays_one():
    source = model("a = ReduceSum<keepdims = 0>(x) y = Identity(a)", outputs="float y")
    check(DropIdle(), source, "y = ReduceSum(x)")
    assert str(source.outputs[0]) == "y: float32[]"


def test_two_outputs_of_one_value_keep_their_names():
    source = model("a = Relu(x) y = Identity(a) z = Identity(a)", outputs=f"{Y}, float[2, 3] z")
    check(DropIdle(), source, "y = Relu(x); z = Identity(y)")


@pytest.mark.parametrize(("opset", "test", "expected"), [(6, 1, "y = Relu(x)"), (6, 0, None), (7, None, "y = Relu(x)")])
def test_dropout_that_trains_stays(opset, test, expected):
    attribute = "" if test is None else f"<is_test = {test}>"
    source = model(f"a = Dropout{attribute}(x) y = Relu(a)", opset=opset, ir_version=4)
    assert DropIdle()(source.ir).modified == (expected is not None)
    assert text_of(source.ir.graph) == (expected or "a = Dropout(x); y = Relu(a)")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("a = Relu(x) b = Relu(x) y = Add(a, b)", "a = Relu(x); y = Add(a, a)"),
        (
            "a = Relu(x) b = Relu(x) c = Neg(a) d = Neg(b) y = Add(c, d)",
            "a = Relu(x); c = Neg(a); y = Add(c, c)",
        ),
        ("a = Softmax<axis = 1>(x) b = Softmax<axis = 1>(x) y = Sub(a, b)", "a = Softmax(x); y = Sub(a, a)"),
        (
            "s = Constant<value = int64[2] {2, 3}>() t = Constant<value = int64[2] {2, 3}>() a = Reshape(x, s) "
            "b = Reshape(x, t) y = Add(a, b)",
            "s = Constant(); a = Reshape(x, s); y = Add(a, a)",
        ),
        (
            "a, b = Split<axis = 1, num_outputs = 2>(x) c, d = Split<axis = 1, num_outputs = 2>(x) "
            "e = Concat<axis = 1>(c, b) f = Concat<axis = 1>(a, d) y = Add(e, f)",
            "a, b = Split(x); e = Concat(a, b); y = Add(e, e)",
        ),
    ],
)
def test_repeated_nodes_are_merged(body, expected):
    source = model(body)
    feeds, before = generate(source), source.to_proto()
    while MergeRepeated()(source.ir).modified:
        pass
    assert text_of(source.ir.graph) == expected
    for old, new in zip(run(before, feeds), run(source.to_proto(), feeds), strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize(
    "body",
    [
        "a = Softmax<axis = 0>(x) b = Softmax<axis = 1>(x) y = Add(a, b)",
        "a = Elu<alpha = 0.0>(x) b = Elu<alpha = -0.0>(x) y = Div(a, b)",
        "s = Constant<value = float {0}>() t = Constant<value = float {-0.0}>() "
        "a = Div(x, s) b = Div(x, t) y = Max(a, b)",
        "s = Constant<value = int64 {1}>() t = Constant<value = int32 {1}>() a = Cast<to = 1>(s) b = Cast<to = 1>(t) "
        "c = Add(x, a) y = Add(c, b)",
    ],
)
def test_nodes_that_are_only_alike_stay(body):
    check(MergeRepeated(), model(body), None)


@pytest.mark.parametrize(("kind", "numbers", "merged"), [("int64[1]", "1", True), ("float[3]", "1, 1, 1", False)])
def test_equal_axes_are_the_same_and_equal_weights_are_not(kind, numbers, merged):
    operator = "Unsqueeze" if merged else "Add"
    body = f"a = {operator}(x, i) b = {operator}(x, j) c = Add(a, b) y = Flatten(c)"
    source = model(body, weights=f"<{kind} i = {{{numbers}}}, {kind} j = {{{numbers}}}>")
    assert MergeRepeated()(source.ir).modified == merged
    assert ("c = Add(a, a)" in text_of(source.ir.graph)) == merged


@pytest.mark.parametrize("op", ["RandomNormalLike", "RandomUniformLike", "Bernoulli"])
def test_random_nodes_are_never_merged(op):
    source = model(f"a = {op}(x) b = {op}(x) y = Sub(a, b)")
    assert not MergeRepeated()(source.ir).modified


def test_a_node_that_makes_an_output_stays():
    source = model("y = Relu(x) z = Relu(x)", outputs=f"{Y}, float[2, 3] z")
    assert not MergeRepeated()(source.ir).modified


@pytest.mark.parametrize(
    ("body", "weights", "expected"),
    [
        ("s = Shape(x) y = Reshape(x, s)", "", "y = Reshape(x, s)"),
        (
            "s = Shape(x) i = Constant<value_ints = [0]>() d = Gather(s, i) r = Constant<value_ints = [-1]>() "
            "t = Concat<axis = 0>(d, r) y = Reshape(x, t)",
            "",
            "y = Reshape(x, t)",
        ),
        ("a = Constant<value = float[3] {1, 2, 3}>() b = Neg(a) c = Mul(b, a) y = Add(x, c)", "", "y = Add(x, c)"),
        ("a = Sqrt(k) y = Mul(x, a)", "<float k = {2}>", "y = Mul(x, a)"),
        ("a = ReduceSum<keepdims = 0>(k) b = Cast<to = 1>(a) y = Mul(x, b)", "<int64[2] k = {2, 3}>", "y = Mul(x, b)"),
        (
            "c = Constant<value = bool {1}>() k = Constant<value = float {2}>() h = Neg(k) "
            "y = If(c)<then_branch = t () => (p) { p = Mul(x, h) }, else_branch = e () => (r) { r = Neg(x) }>",
            "",
            "y = If(c) {p = Mul(x, h)} {r = Neg(x)}",
        ),
    ],
)
def test_constants_are_computed_once(body, weights, expected):
    check(FoldConstants(evaluate), model(body, weights=weights), expected)


@pytest.mark.parametrize("size", ["Gather(s, i)", "Slice(s, i, j)"])
def test_the_sizes_that_are_static_are_constants_beside_those_that_vary(size):
    body = (
        "i = Constant<value_ints = [1]>() j = Constant<value_ints = [2]>() r = Constant<value_ints = [-1]>() "
        f"s = Shape(x) d = {size} t = Concat<axis = 0>(r, d) y = Reshape(x, t)"
    )
    check(FoldConstants(evaluate), model(body, "float[n, 3] x", "float[n, 3] y"), "s = Shape(x); y = Reshape(x, t)")


@pytest.mark.parametrize(
    ("body", "inputs", "weights", "ir_version"),
    [
        ("a = Transpose(w) y = Add(x, a)", X, "<float[3, 2] w = {1, 2, 3, 4, 5, 6}>", 10),  # a weight keeps its name
        ("a = Sqrt(k) y = Mul(x, a)", f"{X}, float k", "<float k = {2}>", 10),  # may be fed
        ("a = Sqrt(k) y = Mul(x, a)", f"{X}, float k", "<float k = {2}>", 3),  # has to be an input
        ("a = DequantizeLinear(q, s) y = Add(x, a)", X, "<int8[3] q = {1, 2, 3}, float s = {0.5}>", 10),
        ("a = RandomNormal<shape = [2, 3], seed = 1.0>() b = Mul(a, x) y = Sub(b, b)", X, "", 10),
    ],
)
def test_what_is_no_constant_or_a_weight_stays(body, inputs, weights, ir_version):
    check(FoldConstants(evaluate), model(body, inputs=inputs, weights=weights, ir_version=ir_version, opset=13), None)


def test_a_constant_that_would_fill_the_file_is_not_written():
    body = (
        "s = Constant<value_ints = [1000, 1000]>() c = ConstantOfShape(s) d = ReduceSum<keepdims = 0>(c) y = Add(x, d)"
    )
    source = model(body)
    FoldConstants(evaluate)(source.ir)
    assert source.to_proto().ByteSize() < 1000


def test_a_constant_output_keeps_its_node():
    source = model("z = Constant<value = float {1}>() y = Relu(x)", outputs=f"{Y}, float z")
    check(FoldConstants(evaluate), source, None)


def test_what_our_runtime_cannot_compute_stays():
    text = """<ir_version: 10, opset_import: ["": 20, "acme": 1]> net (float[3] x) => (float[3] y, float[3] z) {
        a = Constant<value = float[3] {1, 2, 3}>() b = acme.Fancy(a) c = Exp(a) y = Add(x, b) z = Add(x, c) }"""
    source = ep.load(onnx.parser.parse_model(text))
    FoldConstants(evaluate)(source.ir)
    assert text_of(source.ir.graph) == "b = Fancy(a); y = Add(x, b); z = Add(x, c)"


@pytest.mark.parametrize(
    ("body", "weights", "expected"),
    [
        ("a = Neg(x) b = Exp(a) y = Relu(x)", "<float[2] w = {1, 2}>", "y = Relu(x)"),
        (
            "k = Neg(x) c = Constant<value = bool {1}>() d = If(c)<then_branch = t () => (p) { p = Neg(k) }, "
            "else_branch = e () => (r) { r = Identity(k) }> y = Relu(x)",
            "",
            "y = Relu(x)",
        ),
        ("a, b = Split<axis = 1, num_outputs = 2>(x) c = Neg(b) y = Relu(x)", "", "y = Relu(x)"),
    ],
)
def test_what_nothing_uses_goes(body, weights, expected):
    source = model(body, weights=weights)
    check(DropUnused(), source, expected)
    assert not source.ir.graph.initializers


def test_functions_are_covered():
    text = """<ir_version: 10, opset_import: ["": 20, "my": 1]> net (float[3] x) => (float[3] y) { y = my.f(x) }
        <domain: "my", opset_import: ["": 20]> f (x) => (y) {
            i = Identity(x) a = Neg(i) b = Neg(x) c = Exp(a) y = Add(a, b) }"""
    source = ep.load(onnx.parser.parse_model(text))
    for step in (DropIdle(), MergeRepeated(), DropUnused()):
        assert step(source.ir).modified
    (function,) = source.ir.functions.values()
    assert text_of(function) == "a = Neg(x); y = Add(a, a)"
