from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from entrepot.runtime.node_view import InputView, NodeView
from entrepot.runtime.providers.cpu.prepared import conv_depthwise
from entrepot.runtime.providers.cpu.prepared.conv import conv_with
from tests.judges.convolution import assert_convolves
from tests.op_cases.normal import normal as array


@pytest.fixture(params=[10_000_000, 5_000, 1], ids=str)
def tile_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conv_depthwise, "_TILE_BYTES", request.param)
    monkeypatch.setattr(conv_depthwise, "_SMALLEST", 0)


def check(x: np.ndarray, W: np.ndarray, B: np.ndarray | None, residual: Any = None, **attributes: Any) -> None:
    def add(tile: np.ndarray, other: np.ndarray) -> None:
        np.add(tile, other, out=tile)

    attributes = {"group": x.shape[1], **attributes}
    inputs = (InputView("X"), InputView("W", W), *(() if B is None else (InputView("B", B),)))
    run = conv_with(NodeView("Conv", inputs, attributes=attributes), None if residual is None else add)
    assert run is not None
    for _ in range(2):  # kept memory must not leak into the next run
        got = run(x, W, B, residual)
        assert_convolves(got, x, W, B, after=lambda y: y if residual is None else y + residual, **attributes)


GEOMETRY = [
    ((strides, dilations, pads, kernel))
    for strides, dilations, pads, kernel in itertools.product(
        [[1, 1], [2, 2], [1, 3]], [[1, 1], [2, 1]], [[0, 0, 0, 0], [1, 1, 1, 1], [3, 0, 1, 4]], [(3, 3), (2, 5), (1, 1)]
    )
]


@pytest.mark.usefixtures("tile_bytes")
@pytest.mark.parametrize(("strides", "dilations", "pads", "kernel"), GEOMETRY, ids=str)
def test_every_geometry_gives_the_plain_result(
    strides: list[int], dilations: list[int], pads: list[int], kernel: tuple[int, int]
) -> None:
    check(array(2, 5, 11, 9), array(5, 1, *kernel), array(5), strides=strides, dilations=dilations, pads=pads)


@pytest.mark.usefixtures("tile_bytes")
def test_a_channel_may_have_several_outputs() -> None:
    check(array(1, 3, 8, 8), array(6, 1, 3, 3), array(6), pads=[1, 1, 1, 1])


@pytest.mark.usefixtures("tile_bytes")
def test_every_tile_gets_its_part_of_the_residual() -> None:
    check(array(2, 6, 8, 8), array(6, 1, 3, 3), None, array(2, 6, 4, 4), pads=[1, 1, 1, 1], strides=[2, 2])


@pytest.mark.usefixtures("tile_bytes")
def test_what_is_not_finite_stays_where_it_is() -> None:
    x = array(1, 3, 9, 9)
    x[0, 1, 4, 0], x[0, 2, 0, 8] = np.nan, np.inf
    check(x, array(3, 1, 3, 3), array(3), pads=[1, 1, 1, 1])


@pytest.mark.usefixtures("tile_bytes")
def test_doubles_too() -> None:
    check(array(1, 4, 7, 7).astype(np.float64), array(4, 1, 3, 3).astype(np.float64), None, auto_pad="SAME_LOWER")
