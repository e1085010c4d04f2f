"""Grids of affine maps below the operator for them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ir.opset.evaluate import assert_same, parse


@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("sizes", [(2, 1, 3, 5), (1, 2, 4, 2), (2, 1, 2, 3, 4), (1, 1, 5, 2, 3)])
@pytest.mark.parametrize("target", [19, 15, 10, 8])
def test_a_grid_of_sizes_of_run_time_is_computed(sizes: tuple[int, ...], corners: int, target: int) -> None:
    axes = len(sizes) - 2
    spatial = ",".join("PQR"[:axes])
    signature = f"float[N,{axes},{axes + 1}] t, int64[{axes + 2}] s) => (float[N,{spatial},{axes}] y"
    model = parse(f"y = AffineGrid<align_corners = {corners}>(t, s)", 20, signature)
    theta = np.random.default_rng(axes).normal(size=(sizes[0], axes, axes + 1)).astype(np.float32)
    assert_same(model, target, theta, np.array(sizes))
