"""3x3 convolutions by fewer products, against direct sums."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch

import entrepot as ep
from entrepot.runtime.providers.torch import vectors
from entrepot.runtime.providers.torch.convolutions import winograd
from tests.judges.convolution import WINOGRAD, assert_convolves
from tests.op_cases.normal import normal as image

W, B = image(10, 12, 3, 3), image(10)
SUM_LAST = "c = Conv<pads = [1, 1, 1, 1]>(x, w, b)  s = Add(c, r)  y = Relu(s)"


@pytest.fixture(autouse=True, params=[False, True], ids=["by MKL", "by oneDNN"])
def runs(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> list[tuple[int, ...]]:
    """Small ones are transformed, too; the shapes of the passes that were run."""
    monkeypatch.setattr(vectors, "is_mkl_narrow", lambda: request.param)
    for name in ("CHANNELS", "CHANNELS_NARROW", "TILES", "WORK_NARROW"):
        monkeypatch.setattr(winograd, name, 1)
    ran: list[tuple[int, ...]] = []
    run = winograd.WinogradPlan._run

    def noted(self: winograd.WinogradPlan, x: torch.Tensor, y: torch.Tensor) -> None:
        ran.append(tuple(y.shape))
        run(self, x, y)

    monkeypatch.setattr(winograd.WinogradPlan, "_run", noted)
    return ran


def session(body: str, weights: np.ndarray = W, bias: np.ndarray = B) -> ep.Session:
    proto = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 22]>
        g (float[N, C, H, I] x, float[N, M, H, I] r) => (float[N, M, J, K] y) {{ {body} }}"""
    )
    held = {"w": weights, "b": bias}
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(value, name) for name, value in held.items())
    return ep.Session(ep.load(proto), providers=["torch"])


def convolved(x: np.ndarray, pads: list[int], bias: str = ", b") -> np.ndarray:
    body = f"y = Conv<pads = {pads}>(x, w{bias})"
    return session(body).run({"x": x, "r": np.zeros((x.shape[0], 10, *x.shape[2:]), np.float32)})["y"]


@pytest.mark.parametrize("rows", [1, 3, 1 << 20], ids="{} rows a pass".format)
@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 2, 3], [2, 2, 0, 1]], ids=str)
@pytest.mark.parametrize("sizes", [(8, 8), (9, 12), (7, 5), (5, 5)], ids=str)
def test_it_agrees_with_the_direct_sum(
    sizes: tuple[int, int],
    pads: list[int],
    rows: int,
    runs: list[tuple[int, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("_BYTES", "_BYTES_NARROW"):
        monkeypatch.setattr(winograd, name, rows * 64 * 22 * (sizes[1] + 1) // 2)
    x = image(3, 12, *sizes)
    got = convolved(x, pads)
    assert_convolves(got, x, W, B, times=WINOGRAD, pads=pads)
    tiles_down = (got.shape[2] + 1) // 2
    assert sum(images * down // 2 for images, down, *_ in runs) == 3 * tiles_down


def test_it_needs_no_bias(runs: list[tuple[int, ...]]) -> None:
    x = image(1, 12, 10, 10)
    assert_convolves(convolved(x, [1] * 4, bias=""), x, W, times=WINOGRAD, pads=[1] * 4)
    assert runs


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 3e38])
def test_what_would_spread_over_a_tile_is_summed_directly(value: float, runs: list[tuple[int, ...]]) -> None:
    x = image(2, 12, 10, 10)
    x[1, 7, 5, 6] = value
    with np.errstate(invalid="ignore", over="ignore"):
        assert_convolves(convolved(x, [1] * 4), x, W, B, times=WINOGRAD, pads=[1] * 4)
    assert not runs


def test_large_numbers_and_small_weights_do_not_overflow_on_the_way(runs: list[tuple[int, ...]]) -> None:
    x, weights = np.sign(image(1, 12, 10, 10)) * np.float32(2e38), W * np.float32(1e-9)
    got = session("y = Conv<pads = [1, 1, 1, 1]>(x, w, b)", weights).run({"x": x, "r": x})["y"]
    assert_convolves(got, x, weights, B, times=WINOGRAD, pads=[1] * 4)
    assert not runs


def test_small_numbers_and_large_weights_do_not_overflow_on_the_way(runs: list[tuple[int, ...]]) -> None:
    x, weights = image(1, 12, 10, 10) * np.float32(1e-9), np.sign(W) * np.float32(2e38)
    got = session("y = Conv<pads = [1, 1, 1, 1]>(x, w, b)", weights).run({"x": x, "r": x})["y"]
    assert_convolves(got, x, weights, B, times=WINOGRAD, pads=[1] * 4)
    assert not runs


def test_what_follows_sees_bias_and_residual_once(runs: list[tuple[int, ...]]) -> None:
    x, residual = image(2, 12, 10, 11), image(2, 10, 10, 11, of="residual")
    kept = residual.copy()
    got = session(SUM_LAST).run({"x": x, "r": residual})["y"]
    assert_convolves(got, x, W, B, after=lambda y: np.maximum(y + residual, 0), times=WINOGRAD, pads=[1] * 4)
    np.testing.assert_array_equal(residual, kept)
    assert runs


@pytest.mark.parametrize("attributes", ["strides = [2, 2]", "dilations = [2, 2]", "group = 2"])
def test_other_windows_are_not_transformed(attributes: str, runs: list[tuple[int, ...]]) -> None:
    x, weights = image(1, 12, 10, 10), W[:, :6] if "group" in attributes else W
    got = session(f"y = Conv<{attributes}>(x, w, b)", weights).run({"x": x, "r": x})["y"]
    key, _, value = attributes.partition(" = ")
    assert_convolves(got, x, weights, B, **{key: eval(value)})
    assert not runs


def test_without_packed_products_it_is_summed_directly(
    runs: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(winograd.private, "linear", lambda: None)
    monkeypatch.setattr(vectors, "is_mkl_narrow", lambda: True)
    x = image(1, 12, 10, 10)
    assert_convolves(convolved(x, [1] * 4), x, W, B, pads=[1] * 4)
    assert not runs
