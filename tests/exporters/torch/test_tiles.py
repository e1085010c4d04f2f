"""Tiles that nested loops cut out of a map, whose number follows from its height and width."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from torch import Tensor

import entrepot as ep
from entrepot.exporters.torch.rewriting.uneven import Lengthened
from tests.exporters.torch.test_control_flow import results


def stacked(x: Tensor) -> Tensor:
    tiles = [
        x[:, :, i * 4 : (i + 1) * 4, j * 4 : (j + 1) * 4]
        for i in range(x.shape[2] // 4)
        for j in range(x.shape[3] // 4)
    ]
    return torch.stack(tiles, 1)


def flat(x: Tensor) -> Tensor:
    """The later axis is that of the outer loop."""
    columns, rows = range(0, x.shape[3] - 3, 4), range(0, x.shape[2] - 3, 4)
    return torch.stack([x[:, :, i : i + 4, j : j + 4].flatten(1) for j in columns for i in rows], 1)


def of_products(x: Tensor) -> Tensor:
    found = []
    for i, j in itertools.product(range(x.shape[2] // 4), range(x.shape[3] // 4)):
        found.append(x[:, :, i * 4 : i * 4 + 4, j * 4 : j * 4 + 4])
    return torch.cat(found)


def lower_at_the_end(x: Tensor) -> Tensor:
    """All are put together along the axis that their widths differ along."""
    found = [x[:1, :1, :2, :2]]
    for i in range(0, x.shape[2] - 1, 2):
        for j in range(0, x.shape[3], 4):
            found.append(x[:1, :1, i : i + 2, j : j + 4])
    return torch.cat(found, 3)


def rows_of_tiles(x: Tensor) -> Tensor:
    """Those at the right and at the bottom are smaller."""
    rows = []
    for i in range(0, x.shape[2], 4):
        tiles = [x[:, :, i : i + 4, j : j + 4] for j in range(0, x.shape[3], 4)]
        rows.append(torch.cat([tile - tile.mean((2, 3), keepdim=True) for tile in tiles], 3))
    return torch.cat(rows, 2)


def frames(x: Tensor) -> Tensor:
    """The last ones are filled up, in a loop of their own."""
    rows = []
    for i in range(math.ceil(x.shape[2] / 3)):
        if x.shape[2] - i * 3 >= 5:
            rows.append(x[0, 0, i * 3 : i * 3 + 5].reshape(-1))
        else:
            row = x[0, 0, i * 3 :].reshape(-1)
            for _ in range(5 - (x.shape[2] - i * 3)):
                row = torch.cat([row, x[0, 0, -1]])
            rows.append(row)
    return torch.stack(rows)


@pytest.mark.parametrize("function", [stacked, flat, of_products, lower_at_the_end, rows_of_tiles, frames])
def test_tiles_follow_height_and_width(function):
    model = ep.export(function, torch.randn(2, 3, 8, 12), progress=False)
    assert {"height", "width"} <= {*model.inputs[0].shape} or {"x_dim2", "x_dim3"} <= {*model.inputs[0].shape}
    for size in ((2, 3, 8, 12), (1, 3, 12, 6), (2, 3, 5, 4)):
        x = torch.randn(size)
        np.testing.assert_allclose(results(model, x)[0], function(x).numpy(), rtol=1e-5, atol=1e-6)


def test_tiles_of_several_heights_and_widths_are_not_put_together_along_the_later_axis():
    """Where each begins in the result depends on all before it: the sizes stay those of the sample."""

    def function(x: Tensor) -> Tensor:
        found = []
        for i in range(0, x.shape[0], 2):
            for j in range(0, x.shape[1], 3):
                found.append(x[i : i + 2, j : j + 3])
        return torch.cat(found, 0)

    model = ep.export(function, torch.randn(4, 6), progress=False)
    x = torch.randn(4, 6)
    np.testing.assert_array_equal(results(model, x)[0], function(x).numpy())


def test_what_grows_in_a_loop_does_not_end_where_python_goes_through_it():
    pieces = Lengthened.of([torch.ones(1, 2), torch.ones(3, 2)], torch.ones(1, 2), [0])
    with pytest.raises(TypeError, match="gone through"):
        list(pieces)
