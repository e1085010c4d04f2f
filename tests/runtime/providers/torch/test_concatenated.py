"""Convolutions over channels of two tensors, which are not put together first."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

import entrepot as ep
from entrepot.runtime.providers.torch.convolutions import packed
from tests.op_cases.normal import normal as f32

BODY = "c = Concat<axis = AXIS>(x, z)  d = Conv<ATTRIBUTES>(c, w, b)  y = Relu(d)"


def model(
    attributes: str = "pads = [1, 1, 1, 1]", *, body: str = BODY, axis: int = 1, channels: tuple[int, int] = (5, 3)
) -> onnx.ModelProto:
    text = body.replace("ATTRIBUTES", attributes).replace("AXIS", str(axis))
    first, second = channels
    proto = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 22]>
        g (float[N, {first}, H, W] x, float[N, {second}, H, W] z) => (float[N, 6, I, J] y) {{ {text} }}"""
    )
    weights = {"w": f32(6, 8, 3, 3), "b": f32(6)}
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(value, name) for name, value in weights.items())
    return proto


def check(proto: onnx.ModelProto, x: np.ndarray, z: np.ndarray, *, fused: bool = True) -> None:
    session, kept = ep.Session(ep.load(proto), providers=["torch"]), (x.copy(), z.copy())
    assert ("concat_conv" in session.source()) == fused
    peer = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    for _ in range(2):
        expected = peer.run(None, {"x": x, "z": z})[0]
        np.testing.assert_allclose(session.run({"x": x, "z": z})["y"], expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(x, kept[0])
    np.testing.assert_array_equal(z, kept[1])


@pytest.fixture(params=[1, 1 << 30], ids=["large", "small"], autouse=True)
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What counts as large."""
    monkeypatch.setattr("entrepot.runtime.providers.torch.convolutions.concatenated.LARGE", request.param)
    monkeypatch.setattr(packed, "LARGE", request.param)


@pytest.mark.parametrize(
    "attributes",
    ["pads = [1, 1, 1, 1]", "pads = [0, 2, 1, 0]", "strides = [2, 1]", "dilations = [2, 2]", 'auto_pad = "SAME_LOWER"'],
)
@pytest.mark.parametrize("axis", [1, -3])
def test_any_window_is_right(attributes: str, axis: int) -> None:
    check(model(attributes, axis=axis), f32(2, 5, 13, 11), f32(2, 3, 13, 11))


@pytest.mark.parametrize(
    "end", ["y = Conv<pads = [1, 1, 1, 1]>(c, w)", "d = Conv<strides = [2, 2]>(c, w, b)  y = Neg(d)"]
)
def test_other_ends_are_right(end: str) -> None:
    check(model(body=f"c = Concat<axis = 1>(x, z)  {end}"), f32(1, 5, 9, 9), f32(1, 3, 9, 9))


def test_channels_may_be_others_than_were_declared() -> None:
    proto = model(channels=(5, 3))
    for value, name in zip(proto.graph.input, ("x", "z"), strict=True):
        value.type.tensor_type.shape.dim[1].Clear()
        value.type.tensor_type.shape.dim[1].dim_param = f"c_{name}"
    check(proto, f32(1, 2, 9, 9), f32(1, 6, 9, 9), fused=False)


@pytest.mark.parametrize("count", [0, 3])
def test_batches_of_any_size_follow_each_other(count: int) -> None:
    session = ep.Session(ep.load(model()), providers=["torch"])
    assert session.run({"x": f32(2, 5, 9, 9), "z": f32(2, 3, 9, 9)})["y"].shape == (2, 6, 9, 9)
    assert session.run({"x": f32(count, 5, 7, 8), "z": f32(count, 3, 7, 8)})["y"].shape == (count, 6, 7, 8)


def test_what_is_not_a_number_stays_where_it_is() -> None:
    x, z = f32(1, 5, 9, 9), f32(1, 3, 9, 9)
    x[0, 1, 4, 4], z[0, 0, 8, 8] = np.nan, np.inf
    y = ep.Session(ep.load(model()), providers=["torch"]).run({"x": x, "z": z})["y"]
    assert np.isnan(y[0, :, 3:6, 3:6]).all()
    assert not np.isnan(y[0, :, :3]).any()


@pytest.mark.parametrize(
    "body",
    [
        "c = Concat<axis = 2>(x, x)  y = Conv<pads = [1, 1, 1, 1]>(c, v)",
        "c = Concat<axis = 1>(x, z)  d = Conv<pads = [1, 1, 1, 1]>(c, w)  e = ReduceMax(c)  y = Add(d, e)",
        "c = Concat<axis = 1>(x, z)  y = Conv<pads = [1, 1, 1, 1], group = 2>(c, u)",
    ],
    ids=["another axis", "read twice", "groups"],
)
def test_what_is_not_quite_the_pattern_is_left_alone(body: str) -> None:
    proto = model(body=body)
    more = {"v": f32(6, 5, 3, 3), "u": f32(6, 4, 3, 3)}
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(value, name) for name, value in more.items())
    check(proto, f32(2, 5, 9, 9), f32(2, 3, 9, 9), fused=False)
