"""The builder of graphs, by what onnxruntime makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
from onnxscript import FLOAT, script
from onnxscript import opset18 as op

import entrepot as ep
from entrepot.exporters.building import Builder, typed

X = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)


def run(build: Builder, outputs: list[ir.Value], feeds: dict[str, Any]) -> list[Any]:
    proto = ir.to_proto(build.model(outputs))
    onnx.checker.check_model(proto, full_check=True)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_a_number_takes_the_type_of_the_other_operand(dtype: type) -> None:
    build = Builder()
    x = build.input("x", dtype, ["n", 3])
    y = typed(build.op("Add", 2, build.op("Mul", x, x)), dtype, ["n", 3])
    (result,) = run(build, [y], {"x": X.astype(dtype)})
    assert result.dtype == dtype
    assert np.array_equal(result, X.astype(dtype) ** 2 + dtype(2))


def test_a_comparison_is_bool_and_its_number_is_not() -> None:
    build = Builder()
    x = build.input("x", np.float64, ["n"])
    larger = build.op("Greater", x, 0)
    assert (larger.dtype, build.op("Where", larger, x, 0).dtype) == (ir.DataType.BOOL, ir.DataType.DOUBLE)
    assert build.op("ArgMax", x, axis=0).dtype == ir.DataType.INT64


def test_sizes_that_are_known_are_constants() -> None:
    build = Builder()
    x = build.input("x", np.float32, ["n", 3])
    assert build.shape(x, 1).const_value.numpy().tolist() == [3]
    assert build.size(x, -1).const_value.numpy() == 3
    whole, size = build.shape(x), build.size(x, 0)
    shape, number = run(build, [whole, typed(size, np.int64, [])], {"x": X})
    assert (shape.tolist(), number) == ([2, 3], 2)


def test_the_same_array_is_one_weight_and_the_same_name_is_two() -> None:
    build, array = Builder(), np.ones(3, np.float32)
    first, again, other = build.weight("w", array), build.weight("v", array), build.weight("w", array + 1)
    assert first is again
    assert [first.name, other.name] == ["w", "w_1"]
    assert first.const_value.numpy() is array


def test_equal_constants_are_one() -> None:
    build = Builder()
    assert build.constant([1, 2]) is build.constant(np.array([1, 2]))
    assert build.constant(0.0) is not build.constant(-0.0)
    assert build.constant(1, np.int32) is not build.constant(1, np.uint32)


def test_a_body_uses_values_of_the_graph_around_it() -> None:
    build = Builder()
    x = build.input("x", np.float32, ["n", 3])
    body = build.body()
    _, on, total = (
        body.input("i", np.int64, []), body.input("on", np.bool_, []), body.input("total", np.float32, None),
    )  # fmt: skip
    following = body.op("Add", total, x)
    last = build.op("Loop", 3, None, x, body=body.graph([on, following]))
    (result,) = run(build, [typed(last, np.float32, ["n", 3])], {"x": X})
    assert np.array_equal(result, X + X + X + X)


def test_nodes_bear_the_path_of_their_module() -> None:
    build = Builder()
    x = build.input("x", np.float32, [1])
    with build.module("encoder"), build.module("act"):
        y = build.op("Relu", x)
    build.op("Relu", y)
    assert y.producer().metadata_props["entrepot.module"] == "encoder/act"
    assert not build.op("Relu", y).producer().metadata_props


@script()
def _half(x: FLOAT[...]) -> FLOAT[...]:
    return op.Mul(x, 0.5)


@script(default_opset=op)
def _quarter(x: FLOAT[...]) -> FLOAT[...]:
    return _half(_half(x))


def test_a_function_that_calls_another_is_written_out() -> None:
    build = Builder()
    x = build.input("x", np.float32, ["n", 3])
    y = typed(build.call(_quarter, x), np.float32, ["n", 3])
    (result,) = run(build, [y], {"x": X})
    assert np.array_equal(result, X / 4)
    assert op.version == 18  # what functions are written in: they become part of a graph of opset 20


def test_texts_are_constants_of_their_own_and_can_be_written() -> None:
    build = Builder()
    x = build.input("x", ir.DataType.STRING, ["n"])
    first, second = (build.constant(np.array(text, object), ir.DataType.STRING) for text in ("<", ">"))
    model = ep.Model(build.model([build.op("StringConcat", build.op("StringConcat", first, x), second)]))
    (result,) = ep.Session(model, providers=["onnxruntime"]).run({"x": np.array(["a"], object)}).values()
    assert result.tolist() == ["<a>"]


def test_what_follows_a_body_is_named_apart_from_what_is_in_it(tmp_path: Path) -> None:
    build = Builder()
    x = build.input("x", np.float32, [2, 3])
    body = build.body()
    body.input("turn", np.int64, []), body.input("going", np.bool_, [])
    carried = typed(body.input("carried", np.float32, [2, 3]), np.float32, [2, 3])
    last = typed(body.op("Neg", body.op("Neg", body.op("Add", carried, 1))), np.float32, [2, 3])
    graph = body.graph([body.op("Identity", np.array(True)), last])
    y = typed(build.op("Loop", np.array(2), np.array(True), x, body=graph), np.float32, [2, 3])
    for _ in range(3):
        y = typed(build.op("Neg", y), np.float32, [2, 3])
    path = tmp_path / "model.onnx"
    ep.Model(build.model([y])).save(path)
    assert np.array_equal(ep.Session(path)(X), -(X + 2))
