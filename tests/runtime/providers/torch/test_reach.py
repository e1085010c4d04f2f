"""Activations that oneDNN runs inside its convolutions: the same results, and NaN is never lost."""

from __future__ import annotations

import math

import numpy as np
import onnx
import pytest
import torch

import entrepot as ep
from entrepot.runtime.providers.torch.convolutions import reach
from tests.judges.graphs import assert_computes
from tests.op_cases.normal import normal as f32

BLOCK = """<ir_version: 10, opset_import: ["": 22]>
g (float[2, 8, 9, 7] x) => (float[2, 8, 9, 7] y) <float low = {-1.5}, float high = {0.5}> {
    a = Conv<pads = [1, 1, 1, 1]>(x, v, b)
    b0 = END(a)
    c = Conv(b0, w, b)
    d = Relu(c)
    e = Conv<pads = [1, 1, 1, 1]>(d, v)
    f = Add(e, b0)
    g0 = Relu(f)
    h = Conv(g0, w)
    i = Add(g0, h)
    y = END(i)
}"""
ENDS = {"relu": "Relu(i)", "clip": "Clip(i, low, high)"}


def block(end: str, scale: float = 1.0) -> onnx.ModelProto:
    first, last = ENDS[end].replace("(i", "(a"), ENDS[end]
    proto = onnx.parser.parse_model(BLOCK.replace("b0 = END(a)", f"b0 = {first}").replace("END(i)", last))
    weights = {"v": f32(8, 8, 3, 3) * np.float32(scale), "w": f32(8, 8, 1, 1), "b": f32(8)}
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(value, name) for name, value in weights.items())
    return proto


@pytest.fixture(params=[0, 1 << 23], ids=["packed", "points as a product"], autouse=True)
def few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What counts as few points."""
    monkeypatch.setattr("entrepot.runtime.providers.torch.vectors.is_mkl_narrow", lambda: False)
    monkeypatch.setattr("entrepot.runtime.providers.torch.convolutions.products.FEW", request.param)


@pytest.fixture
def hidden(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each convolution that ran, whether it was told that there is no NaN."""
    asked: list[bool] = []

    def noted(y: torch.Tensor, value: float) -> None:
        asked.append(not math.isnan(value))
        reach.tell(y, value)

    monkeypatch.setattr("entrepot.runtime.providers.torch.convolutions.convolution.tell", noted)
    return asked


@pytest.mark.parametrize("end", ENDS)
def test_numbers_go_through_fused_activations(end: str, hidden: list[bool]) -> None:
    proto, x = block(end), f32(2, 8, 9, 7)
    session = ep.Session(ep.load(proto), providers=["torch"])
    for _ in range(2):
        kept = x.copy()
        assert_computes(proto, {"x": x}, session.run({"x": x}))
        np.testing.assert_array_equal(x, kept)
    assert hidden == [True] * 8


@pytest.mark.parametrize(("end", "odd"), [("relu", np.nan), ("relu", np.inf), ("relu", -np.inf), ("clip", np.nan)])
def test_what_is_not_finite_goes_where_it_goes_without_fusion(end: str, odd: float, hidden: list[bool]) -> None:
    proto, x = block(end), f32(2, 8, 9, 7)
    x[1, 3, 4, 2] = odd
    got = ep.Session(ep.load(proto), providers=["torch"]).run({"x": x})["y"]
    expected = ep.Session(ep.load(proto), providers=["reference"]).run({"x": x})["y"]
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    assert np.isnan(got[1]).any()
    assert not np.isnan(got[0]).any()
    assert not any(hidden)


def test_numbers_that_overflow_on_the_way_are_what_they_are_without_fusion(
    hidden: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    session, x = ep.Session(ep.load(block("relu", 1e13)), providers=["torch"]), f32(2, 8, 9, 7) * np.float32(1e13)
    got = session.run({"x": x})["y"]
    assert hidden == [True, True, False, False]
    monkeypatch.setattr("entrepot.runtime.providers.torch.convolutions.convolution.LIMIT", -1.0)
    np.testing.assert_array_equal(got, session.run({"x": x})["y"])
    assert not np.isfinite(got).all()


@pytest.mark.parametrize(
    "x",
    [
        torch.tensor([[3.0, -4.0]]),
        torch.full((1 << 20,), 1e-3),
        torch.full((7,), 1e-30),
        torch.zeros(2, 3, 4, 5),
        torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last) * 1e18,
        torch.full((3,), 3e38),
    ],
    ids=["few", "many alike", "tiny", "zeros", "channels last", "largest"],
)
def test_what_is_measured_is_no_less_than_the_largest(x: torch.Tensor) -> None:
    assert reach.measured(x) >= float(x.abs().max())


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_not_below_any_limit(odd: float) -> None:
    assert not reach.measured(torch.tensor([1.0, odd])) < reach.LIMIT


def test_memory_with_gaps_is_not_measured() -> None:
    assert math.isnan(reach.measured(torch.ones(4, 6)[:, ::2]))
