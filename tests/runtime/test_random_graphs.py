"""Folding, merging, fusing and writing over dead values change no result: random graphs, beside onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

import entrepot as ep
from tests.judges.graphs import assert_computes

UNARY = ["Neg", "Tanh", "Relu", "Abs", "Identity", "Transpose", "Softmax", "Erf", "Sigmoid"]
BINARY = ["Add", "Sub", "Mul", "MatMul", "Add"]
FIXED = ["w", "bias", "half"]


@st.composite
def graphs(draw: st.DrawFn) -> onnx.ModelProto:
    names, nodes = ["x", "z"], []
    for index in range(draw(st.integers(1, 14))):
        kind = draw(st.sampled_from(UNARY + BINARY))
        recent = st.sampled_from(names[-3:] + names)
        inputs = [draw(recent)]
        if kind in BINARY:
            inputs.append(draw(st.sampled_from(["w"]) if kind == "MatMul" else recent | st.sampled_from(FIXED)))
        nodes.append(helper.make_node(kind, inputs, [f"v{index}"]))
        names.append(f"v{index}")
    kept = draw(st.lists(st.sampled_from(names[2:]), min_size=1, max_size=3, unique=True))
    rng = np.random.default_rng(0)
    weights = {
        "w": rng.standard_normal((4, 4)).astype(np.float32) / 2,
        "bias": rng.standard_normal(4).astype(np.float32),
        "half": np.array(0.5, np.float32),
    }
    square = [4, 4]
    graph = helper.make_graph(
        nodes,
        "random",
        [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, square) for name in ("x", "z")],
        [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, square) for name in kept],
        [onnx.numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)


@pytest.mark.parametrize("provider", ["cpu", "reference"])
@given(proto=graphs())
def test_what_is_done_to_a_graph_changes_no_result(provider: str, proto: onnx.ModelProto) -> None:
    model = ep.load(proto)
    rng = np.random.default_rng(1)
    feeds = {name: rng.standard_normal((4, 4)).astype(np.float32) for name in ("x", "z")}
    before = {name: value.copy() for name, value in feeds.items()}
    session = ep.Session(model, providers=[provider])
    for _ in range(2):
        assert_computes(proto, feeds, session.run(feeds))
    for name, value in feeds.items():
        np.testing.assert_array_equal(value, before[name])
