"""What held-out suites and a new user's models brought to light in converted models; onnxruntime is the judge."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest

import entrepot as ep
from entrepot.ir.subgraphs import subgraphs


def model(text: str, opset: int = 18) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> {text}')


def judged(proto: onnx.ModelProto, **feeds: np.ndarray) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    content = proto.SerializeToString()
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"]).run(None, feeds)


def lowered(proto: onnx.ModelProto, opset: int) -> onnx.ModelProto:
    return ep.convert_opset(proto, opset, verify=False).to_proto()


SCAN = """g (float[2,3,2] x) => (float[A,B,C] y) {
    y = Scan<num_scan_inputs = 1, body = b (float[3,2] e) => (float[N,M] o) { c = OPERATOR o = Cast<to=1>(c) }>(x)
}"""


@pytest.mark.parametrize("opset", [9, 10, 11, 12, 13])
@pytest.mark.parametrize(
    "operator", ["GreaterOrEqual(e, e)", "LessOrEqual(e, e)", "HardSwish(e)", "Softmax<axis=0>(e)"]
)
def test_results_of_scan_bodies_have_shapes(operator: str, opset: int) -> None:
    proto = model(SCAN.replace("OPERATOR", operator))
    body = next(a.g for a in proto.graph.node[0].attribute if a.name == "body")
    body.output[0].type.tensor_type.ClearField("shape")
    x = np.arange(-6, 6, dtype=np.float32).reshape(2, 3, 2)
    np.testing.assert_allclose(judged(lowered(proto, opset), x=x)[0], judged(proto, x=x)[0], rtol=1e-6)


@pytest.mark.parametrize("opset", [1, 5, 6, 7, 8, 10])
def test_bounds_that_cross_give_the_upper_one(opset: int) -> None:
    proto = model(
        "g (float[4] x) => (float[4] y) <float low = {2}, float high = {1}> { y = Clip(x, low, high) }", opset=13
    )
    x = np.array([0, 1.5, 3, np.nan], np.float32)
    converted = lowered(proto, opset)
    if opset >= 7:  # what onnxruntime runs
        np.testing.assert_array_equal(judged(converted, x=x)[0], judged(proto, x=x)[0])
    for node in converted.graph.node:  # below 8, Max and Min of a number are written as a Clip each
        bounds = {attribute.name: attribute.f for attribute in node.attribute}
        assert bounds.get("min", -np.inf) <= bounds.get("max", np.inf)


LOOP = """g (float[2,3] x, int64 n) => (float[2,3] y) <int64[1] w = {1}> {
    y = Loop(n, , x) <body = b (int64 i, bool go, float[2,3] a) => (bool more, float[2,3] r)
        <int64[1] axes = {0}, int64[1] unread = {7}> {
        more = Identity(go)
        s = ReduceSum(a, axes)
        t = ReduceSum(s, w)
        r = Add(a, t)
    }>
}"""


def weights(graph: ir.Graph) -> Iterator[str]:
    yield from graph.initializers
    for node in graph:
        for body in subgraphs(node):
            yield from weights(body)


def test_weights_that_a_conversion_needs_no_more_are_gone_and_others_stay() -> None:
    proto = model(LOOP)
    converted = ep.convert_opset(proto, 11, verify=False)
    assert set(weights(converted.ir.graph)) >= {"unread"}
    assert not {"axes", "w"} & set(weights(converted.ir.graph))
    feeds = {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "n": np.array(3)}
    np.testing.assert_array_equal(judged(converted.to_proto(), **feeds)[0], judged(proto, **feeds)[0])


@pytest.mark.parametrize(("operator", "gates", "count"), [("RNN", 1, 1), ("GRU", 3, 2), ("LSTM", 4, 3)])
def test_activations_of_early_files_get_their_proper_names(operator: str, gates: int, count: int) -> None:
    names = ["hardsigmoid", "LEAKYRELU", "tanh"][:count]
    node = onnx.helper.make_node(operator, ["x", "w", "r"], ["y"], hidden_size=1, output_sequence=1, activations=names)
    shapes = {"x": (2, 1, 1), "w": (1, gates, 1), "r": (1, gates, 1)}
    inputs = [onnx.helper.make_tensor_value_info(name, 1, shape) for name, shape in shapes.items()]
    graph = onnx.helper.make_graph([node], "g", inputs, [onnx.helper.make_tensor_value_info("y", 1, None)])
    proto = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 3)], ir_version=3)
    converted = ep.convert_opset(proto, 14, verify=False)
    (made,) = (node for node in converted.ir.graph if node.op_type == operator)
    assert list(made.attributes["activations"].as_strings()) == ["HardSigmoid", "LeakyRelu", "Tanh"][:count]


@pytest.mark.parametrize("opset", [22, 18, 13, 10])
@pytest.mark.parametrize("kind", [bool, np.float32])
@pytest.mark.parametrize("columns", [1, 4, 6])
@pytest.mark.parametrize("fixed", [True, False])
def test_masks_shorter_than_the_keys_hide_the_others(fixed: bool, columns: int, kind: type, opset: int) -> None:
    random = np.random.default_rng(columns)
    q, k, v = (random.standard_normal((1, 2, size, 4)).astype(np.float32) for size in (3, 6, 6))
    mask = random.standard_normal((3, columns)) > -0.5 if kind is bool else random.standard_normal((3, columns))
    mask[:, 0] = True
    mask = mask.astype(kind)
    dims = "3, C" if not fixed else f"3, {columns}"
    keys = "1, 2, 6, 4" if fixed else "1, 2, K, 4"
    text = f"g (float[1, 2, 3, 4] q, float[{keys}] k, float[{keys}] v, {'bool' if kind is bool else 'float'}[{dims}] m)"
    proto = model(text + " => (float[1, 2, 3, 4] y) { y = Attention(q, k, v, m) }", opset=23)
    added = np.full((3, 6), -np.inf)
    added[:, :columns] = np.where(mask, 0.0, -np.inf) if kind is bool else mask
    scores = np.exp(q.astype(np.float64) @ k.transpose(0, 1, 3, 2) / 2 + added)
    expected = scores / scores.sum(-1, keepdims=True) @ v
    found = judged(lowered(proto, opset), q=q, k=k, v=v, m=mask)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["Cast", "Constant", "Identity", "Shape", "Transpose"])
def test_functions_of_a_model_may_be_called_what_operators_are_called(name: str) -> None:
    graph = f"g (float[2, 3] x) => (float[2, 3] y) {{ a = my.{name}(x) b = Abs(a) y = my.{name}(b) }}"
    function = f'<domain: "my", opset_import: ["": 18]> {name} (x) => (y) {{ y = Neg(x) }}'
    proto = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 18, "my": 1]> {graph} {function}')
    x = np.array([[1, -2, 3], [0, 5, -6]], np.float32)
    for made in (ep.load(proto), ep.optimize(proto, verify=False), ep.convert_opset(proto, 13)):
        np.testing.assert_array_equal(ep.Session(made).run({"x": x})["y"], -np.abs(x))
