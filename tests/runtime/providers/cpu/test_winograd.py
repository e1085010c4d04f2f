"""The transformed convolution against direct sums, on what the operator cases are too small for."""

from __future__ import annotations

import numpy as np
import pytest

from entrepot.runtime.kernels.convolution import conv_window
from entrepot.runtime.node_view import InputView, NodeView
from entrepot.runtime.providers.cpu.prepared.conv import conv_with
from entrepot.runtime.providers.cpu.prepared.conv_winograd import suits
from tests.judges.convolution import WINOGRAD, assert_convolves
from tests.op_cases.normal import normal as image

W, B = image(40, 56, 3, 3), image(40)


def bound(pads: list[int], bias: bool = True, epilogue: object = None) -> object:
    inputs = [InputView("X"), InputView("W", W), InputView("B", B) if bias else None]
    return conv_with(NodeView("Conv", tuple(inputs), attributes={"pads": pads}), epilogue)


@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 2, 3], [2, 2, 0, 1]], ids=str)
@pytest.mark.parametrize("sizes", [(16, 16), (17, 20), (31, 19)], ids=str)
def test_it_agrees_with_the_direct_sum(sizes: tuple[int, int], pads: list[int]) -> None:
    x = image(2, 56, *sizes)
    assert suits(conv_window(x.shape, W.shape, None, 1, "NOTSET", None, pads, None), W, 1)
    assert_convolves(bound(pads)(x, W, B), x, W, B, times=WINOGRAD, pads=pads)


def test_it_needs_no_bias() -> None:
    x = image(1, 56, 20, 20)
    assert_convolves(bound([1] * 4, bias=False)(x, W), x, W, times=WINOGRAD, pads=[1] * 4)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_what_is_not_finite_stays_where_it_belongs(value: float) -> None:
    x = image(3, 56, 20, 20)
    x[1, 7, 5, 6] = value
    with np.errstate(invalid="ignore"):
        got = bound([1] * 4)(x, W, B)
    assert_convolves(got, x, W, B, times=WINOGRAD, pads=[1] * 4)


def test_an_epilogue_sees_bias_and_residual_once() -> None:
    x, residual = image(2, 56, 20, 21), image(2, 40, 20, 21, of="residual")

    def add_and_rectify(tile: np.ndarray, other: np.ndarray | None) -> None:
        np.maximum(np.add(tile, other, out=tile), 0, out=tile)

    got = bound([1] * 4, epilogue=add_and_rectify)(x, W, B, residual)
    assert_convolves(got, x, W, B, after=lambda y: np.maximum(y + residual, 0), times=WINOGRAD, pads=[1] * 4)


@pytest.mark.filterwarnings("ignore:invalid value")
def test_the_direct_fallback_runs_the_epilogue_on_fresh_sums() -> None:
    x, residual = image(1, 56, 40, 40), image(1, 40, 40, 40, of="residual")
    x[0, 0, 39, 39] = np.inf  # the first tiles are finished before this is seen

    def add(tile: np.ndarray, other: np.ndarray | None) -> None:
        np.add(tile, other, out=tile)

    got = bound([1] * 4, epilogue=add)(x, W, B, residual)
    assert_convolves(got, x, W, B, after=lambda y: y + residual, times=WINOGRAD, pads=[1] * 4)
