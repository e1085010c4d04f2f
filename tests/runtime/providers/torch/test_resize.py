"""Where torch's own interpolation does what a Resize says, and where it does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

import entrepot as ep
from entrepot.runtime.providers.torch.prepared import resize
from tests.op_cases.normal import normal as f32

FLOOR = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
OWN = {
    "nearest as torch exports it": {"mode": "nearest", **FLOOR},
    "linear": {"mode": "linear", "coordinate_transformation_mode": "half_pixel"},
    "linear between corners": {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
    "cubic": {"mode": "cubic", "coordinate_transformation_mode": "half_pixel", "cubic_coeff_a": -0.75},
}  # fmt: skip
OTHERS = {
    "nearest rounded up": {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "ceil"},
    "linear without half pixels": {"mode": "linear", "coordinate_transformation_mode": "asymmetric"},
    "cubic of other weights": {"mode": "cubic", "cubic_coeff_a": -0.5},
    "smoothed": {"mode": "linear", "antialias": 1},
}


def model(attributes: dict[str, Any], sizes: tuple[int, ...], channels: str = "C") -> onnx.ModelProto:
    node = onnx.helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], **attributes)
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["N", channels, "H", "W"])
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    constant = onnx.numpy_helper.from_array(np.array(sizes, np.int64), "sizes")
    graph = onnx.helper.make_graph([node], "g", [x], [y], [constant])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 19)], ir_version=10)


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What torch's interpolation was asked for beyond the unit vectors of an axis."""
    asked: list[Any] = []

    def interpolate(x: torch.Tensor, **options: Any) -> torch.Tensor:
        if x.shape[1] != 1:
            asked.append(options)
        return torch.nn.functional.interpolate(x, **options)

    monkeypatch.setattr(resize, "interpolate", interpolate)
    return asked


def check(attributes: dict[str, Any], shape: tuple[int, ...], sizes: tuple[int, ...]) -> None:
    proto, x = model(attributes, sizes), f32(*shape)
    peer = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    session = ep.Session(ep.load(proto), providers=["torch"])
    for fed in (x, x * 2):
        np.testing.assert_allclose(session.run({"x": fed})["y"], peer.run(None, {"x": fed})[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("sizes", [(2, 3, 16, 24), (2, 3, 8, 24), (2, 3, 32, 48)], ids=str)
def test_torchs_own_is_used_where_it_does_the_same(name: str, sizes: tuple[int, ...], used: list[Any]) -> None:
    check(OWN[name], (2, 3, 8, 12), sizes)
    assert len(used) == 2


@pytest.mark.parametrize("name", OTHERS)
def test_it_is_not_used_where_it_does_something_else(name: str, used: list[Any]) -> None:
    check(OTHERS[name], (2, 3, 8, 12), (2, 3, 20, 30) if name != "smoothed" else (2, 3, 4, 6))
    assert not used


@pytest.mark.parametrize(("shape", "sizes"), [((2, 3, 8, 12), (2, 6, 8, 12)), ((0, 3, 8, 12), (0, 3, 16, 24))], ids=str)
def test_other_axes_and_nothing_are_left_to_the_formula(shape: Any, sizes: Any, used: list[Any]) -> None:
    proto = model({"mode": "linear"}, sizes)
    y = ep.Session(ep.load(proto), providers=["torch"]).run({"x": f32(*shape)})["y"]
    assert y.shape == sizes
    np.testing.assert_allclose(y, ep.Session(ep.load(proto)).run({"x": f32(*shape)})["y"], rtol=1e-5, atol=1e-6)
    assert not used


def test_channels_last_stays_so() -> None:
    kernel = ep.Session(ep.load(model(OWN["linear"], (2, 3, 16, 24))), providers=["torch"])
    x = torch.from_numpy(f32(2, 3, 8, 12)).contiguous(memory_format=torch.channels_last)
    y = kernel.run({"x": x})["y"]
    assert y.is_contiguous(memory_format=torch.channels_last)
