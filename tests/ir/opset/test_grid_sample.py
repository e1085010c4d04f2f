"""Sampling images and volumes by gathering, where GridSample cannot or does not exist."""

from __future__ import annotations

import numpy as np
import pytest

from entrepot.ir.errors import ConversionError
from entrepot.ir.opset.convert import convert_opset
from tests.ir.opset.evaluate import assert_same, op_types, parse

PADDINGS = ("zeros", "border", "reflection")


def sampler(mode: str, padding: str, corners: int, signature: str) -> tuple[str, str]:
    how = f'mode = "{mode}", padding_mode = "{padding}", align_corners = {corners}'
    return f"y = GridSample<{how}>(x, g)", signature


@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("target", [15, 9])
def test_images_are_sampled_far_outside_too(target: int, mode: str, padding: str, corners: int) -> None:
    body, signature = sampler(mode, padding, corners, "float[N,C,H,W] x, float[N,P,Q,2] g) => (float[N,C,P,Q] y")
    rng = np.random.default_rng(7)
    x = rng.normal(size=(2, 3, 4, 5)).astype(np.float32)
    grid = rng.uniform(-6, 6, (2, 7, 6, 2)).astype(np.float32)
    assert_same(parse(body, 20, signature), target, x, grid)
    assert_same(parse(body, 20, signature), target, x[:, :, :1, :2], grid / 4)


@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("target", [19, 16, 12])
def test_volumes_are_sampled_where_only_images_were(target: int, mode: str, padding: str, corners: int) -> None:
    body, signature = sampler(mode, padding, corners, "float[N,2,D,H,W] x, float[N,P,Q,R,3] g) => (float[N,2,P,Q,R] y")
    rng = np.random.default_rng(8)
    x = rng.normal(size=(2, 2, 3, 4, 5)).astype(np.float32)
    grid = rng.uniform(-3, 3, (2, 2, 3, 4, 3)).astype(np.float32)
    assert_same(parse(body, 20, signature), target, x, grid)


@pytest.mark.parametrize("padding", PADDINGS)
def test_what_is_not_a_number_reaches_only_its_neighbours(padding: str) -> None:
    body, signature = sampler("linear", padding, 0, "float[1,1,3,3] x, float[1,1,3,2] g) => (float[1,1,1,3] y")
    x = np.ones((1, 1, 3, 3), np.float32)
    x[0, 0, 0, 0], x[0, 0, 2, 2] = np.nan, np.inf
    grid = np.array([[[[-0.9, -0.9], [0.1, 0.1], [0.6, 0.7]]]], np.float32)
    assert_same(parse(body, 20, signature), 15, x, grid)


def test_images_keep_the_operator_where_it_exists() -> None:
    body, signature = sampler("cubic", "reflection", 1, "float[N,C,H,W] x, float[N,P,Q,2] g) => (float[N,C,P,Q] y")
    assert op_types(convert_opset(parse(body, 20, signature), 16)) == ["GridSample"]


def test_interpolated_integers_are_refused() -> None:
    body, signature = sampler("linear", "zeros", 0, "int32[N,C,H,W] x, float[N,P,Q,2] g) => (int32[N,C,P,Q] y")
    with pytest.raises(ConversionError, match="interpolated integers"):
        convert_opset(parse(body, 20, signature), 15)
