"""Models as text, for the tests of passes: how they are written, shown, and run before and after."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnx_ir
import onnxruntime

import entrepot as ep

X, Y = "float[2, 3] x", "float[2, 3] y"
SIZES = (2, 1, 0)


def model(
    body: str, inputs: str = X, outputs: str = Y, weights: str = "", opset: int = 20, ir_version: int = 10
) -> ep.Model:
    """A model of one graph; an output written as ``float[] y`` gets the shape that onnx infers."""
    text = (
        f'<ir_version: {ir_version}, opset_import: ["": {opset}]> net ({inputs}) => ({outputs}) {weights} {{ {body} }}'
    )
    proto = onnx.parser.parse_model(text)
    inferred = onnx.shape_inference.infer_shapes(proto).graph.output
    for value, known in zip(proto.graph.output, inferred, strict=True):
        if not value.type.tensor_type.HasField("shape"):
            value.type.CopyFrom(known.type)
    return ep.load(proto)


def text_of(graph: Any) -> str:
    """``y = Add(x, x)``, bodies in braces."""
    lines = []
    for node in graph:
        names = ", ".join("" if value is None else value.name for value in node.inputs)
        bodies = "".join(
            f" {{{text_of(attr.value)}}}"
            for attr in node.attributes.values()
            if attr.type == onnx_ir.AttributeType.GRAPH
        )
        lines.append(f"{', '.join(value.name for value in node.outputs)} = {node.op_type}({names}){bodies}")
    return "; ".join(lines)


def shown(graph: Any) -> str:
    """``y = Reshape(x, [-1, 3])``: small integer constants where they are read, attributes and bodies behind."""
    nodes = [node for node in graph if node.op_type != "Constant" or node.outputs[0].is_graph_output()]
    return "; ".join(
        f"{', '.join(value.name for value in node.outputs)} = {node.op_type}"
        f"({', '.join(map(_operand, node.inputs))}){''.join(_attributes(node))}"
        for node in nodes
    )


def _operand(value: onnx_ir.Value | None) -> str:
    if value is None:
        return ""
    tensor = onnx_ir.convenience.get_const_tensor(value)
    if tensor is None or tensor.dtype != onnx_ir.DataType.INT64 or tensor.size > 8:
        return str(value.name)
    return str(tensor.numpy().tolist())


def _attributes(node: onnx_ir.Node) -> Iterator[str]:
    for name, attribute in sorted(node.attributes.items()):
        if attribute.type == onnx_ir.AttributeType.GRAPH:
            yield f" {{{shown(attribute.value)}}}"
        elif attribute.type in (onnx_ir.AttributeType.INT, onnx_ir.AttributeType.INTS):
            value = attribute.value
            yield f" {name}={list(value) if isinstance(value, tuple) else value}"


def run(proto: onnx.ModelProto, feeds: Mapping[str, Any]) -> list[Any]:
    """The outputs, as onnxruntime computes them without optimising."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    found: list[Any] = onnxruntime.InferenceSession(proto.SerializeToString(), options).run(None, dict(feeds))
    return found


def feeds_of(source: ep.Model, size: int) -> dict[str, Any]:
    """Numbers for every input, with ``size`` for all sizes that vary; signed zeros and infinities are among them."""
    rng = np.random.default_rng(7)
    feeds = {}
    for spec in source.inputs:
        shape = [dim if isinstance(dim, int) else size for dim in spec.shape or ()]
        array = rng.normal(size=shape) * 4
        array.flat[:3] = [-0.0, 0.0, 7.0][: array.size]
        feeds[spec.name] = np.asarray(array).astype(spec.dtype)
    return feeds


def check(
    step: Callable[[onnx_ir.Model], Any],
    source: ep.Model,
    expected: str | None,
    *,
    sizes: Sequence[int] = SIZES,
    same: Callable[[Any, Any], None] = np.testing.assert_array_equal,
) -> None:
    """The graph is as expected, the outputs and what they hold are as before, and a second time changes nothing."""
    before = source.to_proto()
    feeds = [feeds_of(source, size) for size in sizes]
    assert step(source.ir).modified == (expected is not None)
    assert shown(source.ir.graph) == (expected or shown(ep.load(before).ir.graph))
    after = source.to_proto()
    onnx.checker.check_model(after, full_check=True)
    assert [item.name for item in after.graph.output] == [item.name for item in before.graph.output]
    for each in feeds:
        for old, new in zip(run(before, each), run(after, each), strict=True):
            assert old.shape == new.shape
            same(old, new)
    assert not step(source.ir).modified
