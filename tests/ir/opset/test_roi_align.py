"""Regions aligned by half pixels, or at all, where RoiAlign cannot or does not exist."""

from __future__ import annotations

import numpy as np
import pytest

from entrepot.ir.errors import ConversionError
from entrepot.ir.opset.convert import convert_opset
from tests.ir.opset.evaluate import assert_same, op_types, parse, run

X = np.random.default_rng(0).normal(size=(2, 3, 8, 9)).astype(np.float32)
ROIS = np.array(
    [[0, 0, 6, 6], [1.5, 2, 7.5, 5], [-3, -2, 3, 4], [2, 2, 2, 2], [2.2, 3.1, 2.5, 3.9], [5, 5, 30, 40], [6, 6, 2, 1]],
    np.float32,
)
IMAGES = np.array([0, 1, 1, 0, 1, 0, 1])
SHAPES = "float[N,C,H,W] x, float[R,4] r, int64[R] i) => (float[R,C,P,Q] y"
HOW = 'output_height = 2, output_width = 3, coordinate_transformation_mode = "{}", mode = "{}"'


@pytest.mark.parametrize("coordinates", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize(("mode", "samples"), [("avg", 1), ("avg", 2), ("avg", 3), ("max", 1)])
@pytest.mark.parametrize("target", [15, 9])
def test_regions_of_any_size_are_sampled(coordinates: str, mode: str, samples: int, target: int) -> None:
    how = f"{HOW.format(coordinates, mode)}, sampling_ratio = {samples}, spatial_scale = 0.7"
    after = assert_same(parse(f"y = RoiAlign<{how}>(x, r, i)", 16, SHAPES), target, X, ROIS, IMAGES)
    assert ("RoiAlign" in op_types(after)) == (target == 15 and coordinates == "output_half_pixel")


@pytest.mark.parametrize("coordinates", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("target", [12, 9, 7])
def test_known_regions_are_sampled_once_a_pixel(coordinates: str, target: int) -> None:
    signature = "float[2,3,8,9] x, int64[7] i) => (float[7,3,2,3] y"
    stored = f"float[7,4] r = {{{', '.join(map(str, ROIS.ravel()))}}}"
    model = parse(f"y = RoiAlign<{HOW.format(coordinates, 'avg')}>(x, r, i)", 16, signature, stored=stored)
    assert_same(model, target, X, IMAGES)


def test_what_is_not_a_number_reaches_no_region_outside() -> None:
    model = parse(f"y = RoiAlign<{HOW.format('half_pixel', 'avg')}, sampling_ratio = 2>(x, r, i)", 16, SHAPES)
    (have,) = run(convert_opset(model, 15), np.full_like(X, np.nan), np.full((1, 4), 50, np.float32), IMAGES[:1])
    assert (have == 0).all()


def test_samples_counted_by_computed_regions_are_refused() -> None:
    with pytest.raises(ConversionError, match="regions"):
        convert_opset(parse(f"y = RoiAlign<{HOW.format('half_pixel', 'avg')}>(x, r, i)", 16, SHAPES), 15)
