"""Convolutions too large for one tile, which here is made small."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from entrepot.runtime.node_view import InputView, NodeView
from entrepot.runtime.providers.cpu.prepared import conv_plan
from entrepot.runtime.providers.cpu.prepared.conv import conv_with
from tests.judges.convolution import assert_convolves
from tests.op_cases.normal import normal as image


def bound(W: np.ndarray, B: np.ndarray, epilogue: Any = None, **attributes: Any) -> Any:
    inputs = (InputView("X"), InputView("W", W), InputView("B", B))
    return conv_with(NodeView("Conv", inputs, attributes=attributes), epilogue)


@pytest.fixture(params=[(4000, 1500), (1000, 300), (100, 10)], ids=str)
def small_tiles(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, columns = request.param
    monkeypatch.setattr(conv_plan, "_WHOLE_BYTES", whole)
    monkeypatch.setattr(conv_plan, "_COLUMN_BYTES", columns)


SHAPES = [
    ((2, 3, 11, 7), (4, 3, 3, 3), {"pads": [1, 1, 1, 1]}),
    ((1, 6, 9, 9), (6, 1, 3, 3), {"group": 6, "strides": [2, 2]}),
    ((2, 6, 8, 5), (9, 2, 2, 3), {"group": 3, "pads": [0, 1, 1, 2], "dilations": [2, 1]}),
    ((1, 4, 20), (5, 4, 3), {"strides": [3]}),
    ((1, 2, 6, 5, 4), (3, 2, 2, 2, 2), {"pads": [1, 0, 0, 0, 1, 1]}),
]


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize(("x_shape", "w_shape", "attributes"), SHAPES, ids=str)
def test_tiles_make_up_the_whole(x_shape: Any, w_shape: Any, attributes: Any) -> None:
    x, W, B = image(*x_shape), image(*w_shape), image(w_shape[0])
    assert_convolves(bound(W, B, **attributes)(x, W, B), x, W, B, **attributes)


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize(("x_shape", "w_shape", "attributes"), SHAPES, ids=str)
def test_every_tile_gets_its_part_of_the_residual(x_shape: Any, w_shape: Any, attributes: Any) -> None:
    x, W, B = image(*x_shape), image(*w_shape), image(w_shape[0])
    residual = image(*bound(W, B, **attributes)(x, W, B).shape, of="residual")

    def add(tile: np.ndarray, other: np.ndarray | None) -> None:
        np.add(tile, other, out=tile)

    got = bound(W, B, add, **attributes)(x, W, B, residual)
    assert_convolves(got, x, W, B, after=lambda y: y + residual, **attributes)
