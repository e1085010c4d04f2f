"""Torch's private operators: are they there, and what happens where they are not."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
import torch

import entrepot as ep
from entrepot.runtime.providers.torch import private
from tests.judges.graphs import assert_computes
from tests.op_cases.normal import normal as f32

FOUND = [private.convolution, private.linear, private.linear_of_rows]

NET = """<ir_version: 10, opset_import: ["": 22]>
g (float[2, 3, 20, 20] x) => (float[2, 40] y) {
    c = Conv<pads = [1, 1, 1, 1]>(x, w, b)
    r = Relu(c)
    f = Flatten(r)
    y = MatMul(f, v)
}"""


def net() -> onnx.ModelProto:
    proto = onnx.parser.parse_model(NET)
    weights = {"w": f32(8, 3, 3, 3), "b": f32(8), "v": f32(3200, 40)}
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(value, name) for name, value in weights.items())
    return proto


def test_this_torch_has_the_operators_that_the_fast_kernels_are_made_of() -> None:
    assert (private.convolution() is not None) == torch.backends.mkldnn.is_available()
    assert (private.linear() is not None) == torch.backends.mkldnn.is_available()
    assert (private.linear_of_rows() is not None) == torch.backends.mkl.is_available()


def test_packed_weights_tell_where_they_lie() -> None:
    made = private.linear()
    assert made is not None
    packed = made.pack(torch.ones(64, 48), 0)  # held, or its memory is another's when it is read
    found = private.memory_of(packed)
    assert found is not None
    numbers = np.frombuffer(ctypes.string_at(*found), np.float32)
    assert np.count_nonzero(numbers == 1.0) == 64 * 48
    assert set(numbers) <= {0.0, 1.0}  # a layout may pad


def test_what_is_not_packed_tells_nothing() -> None:
    assert private.memory_of("weights") is None


def test_a_convolution_of_onednn_that_ends_in_relu_loses_nan() -> None:
    """The reason why it ends so only where there is none; where this fails, ``reach`` is no longer needed."""
    made = private.convolution()
    assert made is not None
    geometry = ([1, 1], [1, 1], [1, 1], 1)
    x = torch.full((1, 4, 5, 5), float("nan"))
    packed = made.pack(torch.ones(4, 4, 3, 3), *geometry, list(x.shape))
    assert not made.run(x, packed, None, *geometry, ("relu", ())).isnan().any()
    assert made.run(x, packed, None, *geometry, None).isnan().all()


class _Missing:
    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"no operator {name}")


class _Wrong:
    """Operators that are there, and compute something else."""

    def __getattr__(self, name: str) -> Any:
        return self

    def __call__(self, x: torch.Tensor, *arguments: Any) -> torch.Tensor:
        return torch.zeros_like(x)


@pytest.mark.parametrize("operators", [_Missing(), _Wrong()], ids=["missing", "wrong"])
@pytest.mark.parametrize("find", FOUND)
def test_what_is_not_as_expected_counts_as_missing(
    find: Callable[[], Any], operators: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(private.torch, "ops", operators)
    assert find.__wrapped__() is None  # type: ignore[attr-defined] # what the cache is around


def test_without_them_the_plain_kernels_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for found in FOUND:
        monkeypatch.setattr(private, found.__name__, lambda: None)
    proto, x = net(), f32(2, 3, 20, 20)
    session = ep.Session(ep.load(proto), providers=["torch"])
    assert {row.op_type: row.how for row in session.plan().placements}["Conv"] == "native"
    assert_computes(proto, {"x": x}, session.run({"x": x}))


def test_with_them_the_result_is_that_of_onnxruntime() -> None:
    proto, x = net(), f32(2, 3, 20, 20)
    session = ep.Session(ep.load(proto), providers=["torch"])
    assert "conv_relu" in session.source()
    assert_computes(proto, {"x": x}, session.run({"x": x}))


def test_constants_of_other_types_take_the_plain_way() -> None:
    proto = net()
    for value in [*proto.graph.input, *proto.graph.output]:
        value.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    for tensor in proto.graph.initializer:
        wide = onnx.numpy_helper.to_array(tensor).astype(np.float64)
        tensor.CopyFrom(onnx.numpy_helper.from_array(wide, tensor.name))
    x = f32(2, 3, 20, 20).astype(np.float64)
    session = ep.Session(ep.load(proto), providers=["torch"])
    assert {row.op_type: row.how for row in session.plan().placements}["Conv"] == "native"
    y = session.run({"x": x})["y"]
    np.testing.assert_allclose(y, ep.Session(ep.load(proto)).run({"x": x})["y"], rtol=1e-12)
