"""The transformed convolution against the direct one, on what the operator cases are too small for."""

from __future__ import annotations

import numpy as np
import pytest

from entrepot.runtime.node_view import InputView, NodeView
from entrepot.runtime.providers.cpu.native.convolution import conv as plain
from entrepot.runtime.providers.cpu.native.convolution import conv_window
from entrepot.runtime.providers.cpu.prepared.conv import conv_with
from entrepot.runtime.providers.cpu.prepared.conv_winograd import suits

rng = np.random.default_rng(0)
W = rng.standard_normal((40, 56, 3, 3)).astype(np.float32)
B = rng.standard_normal(40).astype(np.float32)


def image(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def bound(pads: list[int], bias: bool = True, epilogue: object = None) -> object:
    inputs = [InputView("X"), InputView("W", W), InputView("B", B) if bias else None]
    return conv_with(NodeView("Conv", tuple(inputs), attributes={"pads": pads}), epilogue)


def assert_close(got: np.ndarray, wanted: np.ndarray) -> None:
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got, wanted, rtol=0, atol=3e-6 * np.abs(wanted).max())


@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 2, 3], [2, 2, 0, 1]], ids=str)
@pytest.mark.parametrize("sizes", [(16, 16), (17, 20), (31, 19)], ids=str)
def test_it_agrees_with_the_direct_sum(sizes: tuple[int, int], pads: list[int]) -> None:
    x = image(2, 56, *sizes)
    assert suits(conv_window(x.shape, W.shape, None, 1, "NOTSET", None, pads, None), W, 1)
    assert_close(bound(pads)(x, W, B), plain(x, W, B, pads=pads))


def test_it_needs_no_bias() -> None:
    x = image(1, 56, 20, 20)
    assert_close(bound([1] * 4, bias=False)(x, W), plain(x, W, pads=[1] * 4))


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_what_is_not_finite_stays_where_it_belongs(value: float) -> None:
    x = image(3, 56, 20, 20)
    x[1, 7, 5, 6] = value
    with np.errstate(invalid="ignore"):
        got, wanted = bound([1] * 4)(x, W, B), plain(x, W, B, pads=[1] * 4)
    assert np.array_equal(np.isfinite(got), np.isfinite(wanted))
    assert_close(got[[0, 2]], wanted[[0, 2]])
    finite = np.isfinite(wanted[1])
    assert_close(got[1][finite], wanted[1][finite])


def test_an_epilogue_sees_bias_and_residual_once() -> None:
    x, residual = image(2, 56, 20, 21), image(2, 40, 20, 21)

    def add_and_rectify(tile: np.ndarray, other: np.ndarray | None) -> None:
        np.maximum(np.add(tile, other, out=tile), 0, out=tile)

    got = bound([1] * 4, epilogue=add_and_rectify)(x, W, B, residual)
    assert_close(got, np.maximum(plain(x, W, B, pads=[1] * 4) + residual, 0))


@pytest.mark.filterwarnings("ignore:invalid value")
def test_the_direct_fallback_runs_the_epilogue_on_fresh_sums() -> None:
    x, residual = image(1, 56, 40, 40), image(1, 40, 40, 40)
    x[0, 0, 39, 39] = np.inf  # the first tiles are finished before this is seen

    def add(tile: np.ndarray, other: np.ndarray | None) -> None:
        np.add(tile, other, out=tile)

    got, wanted = bound([1] * 4, epilogue=add)(x, W, B, residual), plain(x, W, B, pads=[1] * 4) + residual
    finite = np.isfinite(wanted)
    assert_close(got[finite], wanted[finite])
