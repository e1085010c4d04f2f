"""Images whose blocks are laid out column by column, and identity matrices, of open sizes."""

from __future__ import annotations

import numpy as np
import pytest

from entrepot.ir.opset.convert import convert_opset
from tests.ir.opset.evaluate import assert_same, parse, run

X = np.arange(2 * 8 * 2 * 3, dtype=np.float32).reshape(2, 8, 2, 3)


@pytest.mark.parametrize("target", [10, 7])
def test_blocks_of_a_channel_are_spread_out_whatever_the_size_of_the_image(target: int) -> None:
    body = 'y = DepthToSpace<blocksize = 2, mode = "CRD">(x)'
    assert_same(parse(body, 11, "float[N,8,H,W] x) => (float[N,2,P,Q] y"), target, X)


def test_blocks_of_a_channel_are_brought_together_whatever_the_size_of_the_image() -> None:
    way_there = 'd = DepthToSpace<blocksize = 2, mode = "CRD">(x)'
    model = parse(
        f'{way_there} y = SpaceToDepth<blocksize = 2, mode = "CRD">(d)', 28, "float[N,8,H,W] x) => (float[N,8,H,W] y"
    )
    np.testing.assert_array_equal(run(convert_opset(model, 13), X)[0], X)


@pytest.mark.parametrize("k", [-1, 0, 2])
@pytest.mark.parametrize("target", [8, 7])
def test_an_identity_matrix_has_the_size_of_its_input(target: int, k: int) -> None:
    model = parse(f"y = EyeLike<k = {k}>(x)", 9, "float[N,M] x) => (float[N,M] y")
    assert_same(model, target, np.ones((3, 4), np.float32))
