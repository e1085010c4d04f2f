"""Copies of graphs, whose nodes may stand before those that they read from: onnxruntime takes such files."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir
import pytest

import entrepot as ep
from entrepot.ir.copying import copy_graphs
from entrepot.ir.errors import ConversionError

FLAT = "y = Add(x, a)  a = Neg(b)  b = Mul(x, w)"
CAPTURED = """n = Constant<value = int64 {2}>()  y = Loop(n, , x) <body = b (int64 i, bool c, float[N] s)
    => (bool d, float[N] t) { d = Identity(c)  t = Add(u, k)  u = Neg(s) }>  k = Mul(x, w)"""
CALLED = "y = my.moved(a)  a = Neg(x)"
FUNCTION = '<domain: "my", opset_import: ["": 20]> moved (x) => (y) { y = Add(x, z)  z = Abs(x) }'
X = np.array([1, -2, 3], np.float32)


def disordered(body: str) -> onnx.ModelProto:
    head = '<ir_version: 9, opset_import: ["": 20, "my": 1]> g (float[N] x) => (float[N] y) <float w = {2}>'
    return onnx.parser.parse_model(f"{head} {{ {body} }} {FUNCTION if body == CALLED else ''}")


def names(graph: Any) -> list[str]:
    return [node.outputs[0].name for node in graph]


@pytest.mark.parametrize("body", [FLAT, CAPTURED, CALLED])
def test_nodes_out_of_order_are_sorted_in_the_copy_alone(body: str) -> None:
    model = ep.load(disordered(body))
    before = names(model.ir.graph), [names(function) for function in model.ir.functions.values()]
    copy = copy_graphs(model.ir)
    assert (names(model.ir.graph), [names(function) for function in model.ir.functions.values()]) == before
    onnx.checker.check_model(onnx_ir.serde.serialize_model(copy))
    weights = [graph.graph.initializers["w"].const_value for graph in (copy, model.ir)]
    assert weights[0] is weights[1]


@pytest.mark.parametrize(
    ("body", "expected"), [(FLAT, -X), (CAPTURED, X), (CALLED, np.abs(X) - X)], ids=["flat", "captured", "called"]
)
def test_models_out_of_order_are_run_converted_optimised_and_imported(body: str, expected: np.ndarray) -> None:
    model = ep.load(disordered(body))
    for made in (model, ep.convert_opset(model, 17), ep.optimize(model)):
        np.testing.assert_array_equal(ep.Session(made).run({"x": X})["y"], expected)
    assert ep.to_torch(model).report


def test_a_graph_that_depends_on_itself_is_not_copied() -> None:
    graph = onnx_ir.from_onnx_text(
        '<ir_version: 9, opset_import: ["": 20]> g (float[N] x) => (float[N] y) { a = Neg(x)  y = Abs(a) }'
    )
    first, second = list(graph.graph)
    first.replace_input_with(0, second.outputs[0])
    with pytest.raises(ConversionError, match="cannot be copied"):
        copy_graphs(graph)
    assert list(graph.graph) == [first, second]
