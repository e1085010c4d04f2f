"""Passes over weights and constants: names stay, values are what the nodes computed."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import onnx_ir
import pytest

import entrepot as ep
from entrepot.ir.derived import DerivedTensor
from entrepot.ir.passes.absorb_leading import AbsorbLeadingNormalization
from entrepot.ir.passes.absorb_normalization import AbsorbNormalization
from entrepot.ir.passes.arrange_weights import ArrangeWeights
from entrepot.ir.passes.drop_unused import DropUnused
from entrepot.ir.passes.drop_zero_bias import DropZeroBias
from entrepot.ir.passes.lift_constants import LiftConstants
from tests.ir.passes.forms import X, Y, check, model, run
from tests.judges.graphs import assert_computes
from tests.op_cases.normal import normal as f32

W = "<float[3, 2] w = {1, 2, 3, 4, 5, 6}>"


@pytest.mark.parametrize(
    ("body", "expected", "shape"),
    [
        ("a = Transpose(w) y = Add(x, a)", "y = Add(x, w)", (2, 3)),
        ("a = Transpose<perm = [1, 0]>(w) y = Add(x, a)", "y = Add(x, w)", (2, 3)),
        ("s = Constant<value_ints = [-1, 3]>() a = Reshape(w, s) y = Add(x, a)", "y = Add(x, w)", (2, 3)),
        (
            "i = Constant<value_ints = [0]>() a = Unsqueeze(w, i) b = Transpose<perm = [0, 2, 1]>(a) "
            "c = Squeeze(b, i) y = Add(x, c)",
            "y = Add(x, w)",
            (2, 3),
        ),
    ],
)
def test_weights_are_stored_as_they_are_used(body, expected, shape):
    def step(graph):
        result = ArrangeWeights()(graph)
        DropUnused()(graph)
        return result

    source = model(body, weights=W)
    check(step, source, expected)
    (weight,) = source.ir.graph.initializers.values()
    assert weight.name == "w"
    assert tuple(weight.shape) == shape
    assert isinstance(weight.const_value, DerivedTensor)


@pytest.mark.parametrize(
    ("body", "inputs"),
    [
        ("a = Transpose(w) b = MatMul(x, w) c = MatMul(w, a) d = MatMul(b, b) y = Add(x, a)", X),  # two arrangements
        ("a = Transpose(w) y = Add(x, a)", f"{X}, float[3, 2] w"),  # may be fed
        ("a = Transpose(x) b = Add(a, w) y = Transpose(b)", X),
    ],
)
def test_weights_with_other_readers_stay(body, inputs):
    source = model(body, inputs, weights=W)
    assert not ArrangeWeights()(source.ir).modified


def test_words_stay_as_they_are():
    source = model("a = Transpose(x) y = Identity(a)", "string[n, 2] x", "string[2, n] y")
    words = onnx_ir.StringTensor([b"a", b"b"], shape=onnx_ir.Shape([2, 1]), name="w")
    weight = onnx_ir.Value(name="w", const_value=words, type=onnx_ir.TensorType(words.dtype), shape=words.shape)
    source.ir.graph.register_initializer(weight)
    source.ir.graph[0].replace_input_with(0, weight)
    assert not ArrangeWeights()(source.ir).modified


def test_a_weight_that_is_an_output_stays():
    source = model("y = Transpose(w)", weights=W)
    assert not ArrangeWeights()(source.ir).modified


NORM = "BatchNormalization<epsilon = 0.01>(c, s, t, m, v)"
CONV, ROWS = "float[2, 4, 7, 7] x", "float[5, 4] x"

ABSORBS = {
    "a convolution": (CONV, f"c = Conv(x, w, b) y = {NORM}", (6, 4, 3, 3), "wt"),
    "one without bias": (CONV, f"c = Conv(x, w) y = {NORM}", (6, 4, 3, 3), "wt"),
    "one in groups": (CONV, f"c = Conv<group = 2, strides = [2, 2]>(x, w, b) y = {NORM}", (6, 2, 3, 3), "wt"),
    "a transposed one": (CONV, f"c = ConvTranspose<strides = [2, 2]>(x, w, b) y = {NORM}", (4, 6, 3, 3), "wt"),
    "a transposed one in groups": (CONV, f"c = ConvTranspose<group = 2>(x, w) y = {NORM}", (4, 3, 3, 3), "wt"),
    "a product": (ROWS, f"c = Gemm(x, w, b) y = {NORM}", (4, 6), "wt"),
    "a transposed product": (ROWS, f"c = Gemm<transB = 1, alpha = 0.5, beta = 3.0>(x, w, b) y = {NORM}", (6, 4), "wt"),
}

LEAVES = {
    "a result that is read twice": (CONV, f"c = Conv(x, w, b) n = {NORM} y = Add(c, n)"),
    "statistics that are fed": (f"{CONV}, float[6] m", f"c = Conv(x, w, b) y = {NORM}"),
    "weights that are read twice": (CONV, f"c = Conv(x, w, b) n = {NORM} d = Conv(x, w, b) y = Add(n, d)"),
    "a bias without a place": (CONV, f"c = Conv(x, w) n = {NORM} d = Unsqueeze(t, ax) y = Add(n, d)"),
    "an addend of one row per row": (ROWS, f"c = Gemm(x, w, rows) y = {NORM}"),
    "training": (CONV, "c = Conv(x, w, b) y, p, q = BatchNormalization<training_mode = 1>(c, s, t, m, v)"),
    "weights that would overflow": (CONV, f"c = Conv(x, w, b) y = {NORM.replace('s,', 'huge,')}"),
    "a variance that is none": (CONV, f"c = Conv(x, w, b) y = {NORM.replace('v)', 'none)')}"),
}


def built(inputs: str, body: str, weight: tuple[int, ...]) -> onnx.ModelProto:
    weights = {"w": f32(*weight), **{name: f32(6, of=name) for name in "bstm"}, "v": np.abs(f32(6, of="v")) + 0.1}
    weights |= {"rows": f32(5, 1), "huge": np.full(6, 3e38, np.float32), "none": np.full(6, -1, np.float32)}
    weights |= {"ax": np.array([1, 2])}
    rank = len(weight)
    text = f'<ir_version: 10, opset_import: ["": 20]> g ({inputs}) => (float[{", ".join("?" * rank)}] y) {{ {body} }}'
    proto = onnx.parser.parse_model(text)
    used = {name for node in proto.graph.node for name in node.input}
    for name in sorted(used & set(weights)):
        proto.graph.initializer.append(onnx.numpy_helper.from_array(weights[name], name))
    for index, node in enumerate(proto.graph.node):
        node.name = f"node{index}"
    return proto


@pytest.mark.parametrize(("inputs", "body", "weight", "kept"), ABSORBS.values(), ids=ABSORBS)
def test_normalisations_are_absorbed(inputs, body, weight, kept):
    before = built(inputs, body, weight)
    source = ep.load(before)
    feeds = {"x": f32(5, 4) if len(weight) == 2 else f32(2, 4, 7, 7)}
    assert AbsorbNormalization()(source.ir).modified
    DropUnused()(source.ir)
    (node,) = source.ir.graph
    assert node.name == "node0"  # and with it where it comes from
    assert [value.name for value in node.inputs] == ["x", *kept]
    after = source.to_proto()
    onnx.checker.check_model(after, full_check=True)
    assert_computes(before, feeds, {"y": run(after, feeds)[0]})
    assert not AbsorbNormalization()(source.ir).modified


@pytest.mark.parametrize(("inputs", "body"), LEAVES.values(), ids=LEAVES)
def test_normalisations_by_something_else_stay(inputs, body):
    source = ep.load(built(inputs, body, (4, 6) if inputs == ROWS else (6, 4, 3, 3)))
    assert not AbsorbNormalization()(source.ir).modified


def test_absorbed_weights_follow_those_that_they_come_from():
    """They are computed when they are read, so that an export copies the weights once."""
    source = ep.load(built(*ABSORBS["a convolution"][:3]))
    held = {name: value.const_value for name, value in source.ir.graph.initializers.items()}
    AbsorbNormalization()(source.ir)
    made = source.ir.graph.initializers["t"].const_value
    assert isinstance(made, DerivedTensor)
    assert list(map(id, made.sources)) == [id(held[name]) for name in "bstmv"]


BEFORE = "BatchNormalization<epsilon = 0.01>(x, s, t, m, v)"
SIX = "float[2, 6, 7, 7] x"

LEADING = {
    "a convolution": (SIX, f"c = {BEFORE} y = Conv(c, w, b)", (6, 6, 3, 3), "wb"),
    "one without bias": (SIX, f"c = {BEFORE} y = Conv<strides = [2, 1]>(c, w)", (6, 6, 3, 3), ("w", "w_bias")),
    "one in groups": (SIX, f"c = {BEFORE} y = Conv<group = 2>(c, w)", (4, 3, 2, 2), ("w", "w_bias")),
    "one by channel": (SIX, f'c = {BEFORE} y = Conv<group = 6, auto_pad = "VALID">(c, w, b)', (6, 1, 3, 3), "wb"),
    "a product": ("float[5, 6] x", f"c = {BEFORE} y = Gemm<alpha = 0.5, beta = 3.0>(c, w, b)", (6, 6), "wb"),
    "a transposed one": ("float[5, 6] x", f"c = {BEFORE} y = Gemm<transB = 1>(c, w)", (4, 6), ("w", "w_bias")),
}  # fmt: skip

STAYS = {
    "an activation": (SIX, f"c = {BEFORE} d = Relu(c) y = Conv(d, w)"),
    "a padded convolution": (SIX, f"c = {BEFORE} y = Conv<pads = [1, 0, 0, 0]>(c, w)"),
    "one that pads by itself": (SIX, f'c = {BEFORE} y = Conv<auto_pad = "SAME_UPPER">(c, w)'),
    "a transposed convolution": (SIX, f"c = {BEFORE} y = ConvTranspose(c, w)"),
    "a result that is read twice": (SIX, f"c = {BEFORE} d = Conv(c, w) y = Add(c, d)"),
    "weights that are read twice": (SIX, f"c = {BEFORE} d = Conv(c, w) e = Conv(x, w) y = Add(d, e)"),
    "statistics that are fed": (f"{SIX}, float[6] m", f"c = {BEFORE} y = Conv(c, w)"),
    "an operand on the right": ("float[6, 6] x", f"c = {BEFORE} y = Gemm(w, c)"),
    "one that is transposed": ("float[6, 6] x", f"c = {BEFORE} y = Gemm<transA = 1>(c, w)"),
    "weights that would overflow": (SIX, f"c = {BEFORE.replace('s,', 'huge,')} y = Conv(c, w)"),
    "training": (SIX, "c, p, q = BatchNormalization<training_mode = 1>(x, s, t, m, v) y = Conv(c, w)"),
}


@pytest.mark.parametrize(("inputs", "body", "weight", "kept"), LEADING.values(), ids=LEADING)
def test_normalisations_before_a_product_are_absorbed(inputs, body, weight, kept):
    before = built(inputs, body, weight)
    source = ep.load(before)
    feeds = {"x": f32(5, 6) if len(weight) == 2 else f32(2, 6, 7, 7)}
    assert AbsorbLeadingNormalization()(source.ir).modified
    DropUnused()(source.ir)
    (node,) = source.ir.graph
    assert node.name == "node1"
    assert [value.name for value in node.inputs] == ["x", *kept]
    after = source.to_proto()
    onnx.checker.check_model(after, full_check=True)
    assert_computes(before, feeds, {"y": run(after, feeds)[0]})
    assert not AbsorbLeadingNormalization()(source.ir).modified


@pytest.mark.parametrize(("inputs", "body"), STAYS.values(), ids=STAYS)
def test_normalisations_before_something_else_stay(inputs, body):
    source = ep.load(built(inputs, body, (6, 6) if "[6, 6]" in inputs else (6, 6, 3, 3)))
    assert not AbsorbLeadingNormalization()(source.ir).modified


ZEROS = "<float[3, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}, float[3] b = {0, 0, 0}, float[3] c = {0, 1, 0}>"


def test_a_bias_of_zeros_is_left_out():
    check(DropZeroBias(), model("y = Gemm(x, w, b)", weights=ZEROS), "y = Gemm(x, w)")


@pytest.mark.parametrize(("body", "opset", "named"), [
    ("y = Gemm(x, w, c)", 20, ()), ("y = Gemm(x, w, b)", 20, ("b",)), ("y = Gemm(x, w, b)", 9, ()),
])  # fmt: skip
def test_a_bias_stays_that_is_not_zero_or_a_weight_or_needed(body, opset, named):
    assert not DropZeroBias(named)(model(body, weights=ZEROS, opset=opset).ir).modified


@pytest.mark.parametrize(
    ("body", "expected", "names"),
    [
        ("s = Constant<value_ints = [2, 3]>() y = Expand(x, s)", "y = Expand(x, [2, 3])", {"s"}),
        ("k = Constant<value_float = 2.0>() y = Mul(x, k)", "y = Mul(x, k)", {"k"}),
        (
            """c = Constant<value = bool {1}>() y = If(c)<
                then_branch = t () => (p) { k = Constant<value = float {2}>() p = Mul(x, k) },
                else_branch = e () => (r) { k = Constant<value = float {3}>() r = Mul(x, k) }>""",
            "y = If(c) {r = Mul(x, k_2)} {p = Mul(x, k_1)}",
            {"c", "k_1", "k_2"},
        ),
    ],
)  # fmt: skip
def test_constants_go_beside_the_weights(body, expected, names):
    source = model(body)
    check(LiftConstants(), source, expected)
    assert set(source.ir.graph.initializers) == names


@pytest.mark.parametrize(("body", "outputs", "ir_version"), [
    ("z = Constant<value = float {1}>() y = Relu(x)", f"{Y}, float z", 10),
    ("k = Constant<value = float {1}>() y = Mul(x, k)", Y, 3),
])  # fmt: skip
def test_constants_that_have_to_be_nodes_stay(body, outputs, ir_version):
    source = model(body, outputs=outputs, ir_version=ir_version, opset=9)
    assert not LiftConstants()(source.ir).modified


def test_a_constant_of_a_function_stays():
    text = """<ir_version: 10, opset_import: ["": 20, "my": 1]> net (float[3] x) => (float[3] y) { y = my.f(x) }
        <domain: "my", opset_import: ["": 20]> f (x) => (y) { k = Constant<value = float {2}>() y = Mul(x, k) }"""
    assert not LiftConstants()(ep.load(onnx.parser.parse_model(text)).ir).modified
