"""Resize to sizes known at run time only, where older versions know asymmetric scales alone."""

from __future__ import annotations

import numpy as np
import pytest

from entrepot.ir.errors import ConversionError
from entrepot.ir.opset.convert import convert_opset
from tests.ir.opset.evaluate import assert_same, op_types, parse

X = np.random.default_rng(0).normal(size=(2, 3, 5, 7)).astype(np.float32)
LINEAR = [
    f'coordinate_transformation_mode = "{kind}", mode = "linear"'
    for kind in ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners")
]
NEAREST = [
    f'coordinate_transformation_mode = "{kind}", mode = "nearest", nearest_mode = "{way}"'
    for kind in ("half_pixel", "asymmetric", "align_corners")
    for way in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
]
SHAPES = "float[N,3,H,W] x, int64[2] s) => (float[N,3,P,Q] y"
BODY = """b = Shape<start = 0, end = 2>(x) t = Concat<axis = 0>(b, s) y = Resize<{how}>(x, , , t)"""


@pytest.mark.parametrize("how", LINEAR + NEAREST)
@pytest.mark.parametrize("size", [(10, 14), (4, 9), (1, 1), (5, 7)])
def test_sizes_of_run_time_are_reached(how: str, size: tuple[int, int]) -> None:
    assert_same(parse(BODY.format(how=how), 18, SHAPES), 10, X, np.array(size))


@pytest.mark.parametrize("how", [LINEAR[0], NEAREST[0], NEAREST[4]])
def test_opset_9_is_reached_too(how: str) -> None:
    after = assert_same(parse(BODY.format(how=how), 18, SHAPES), 9, X, np.array([8, 3]))
    assert not {"Resize", "Upsample"} & set(op_types(after))


@pytest.mark.parametrize("how", LINEAR + NEAREST)
def test_known_scales_of_unknown_sizes_are_reached(how: str) -> None:
    model = parse(
        f"y = Resize<{how}>(x, , s)",
        18,
        "float[N,3,H,W] x) => (float[N,3,P,Q] y",
        stored="float[4] s = {1, 1, 2.5, 0.6}",
    )
    assert_same(model, 10, X)


def test_axes_that_stay_are_left_alone() -> None:
    after = convert_opset(parse(BODY.format(how=LINEAR[0]), 18, SHAPES), 10)
    assert op_types(after).count("NonZero") == 2


def test_cubic_is_refused() -> None:
    with pytest.raises(ConversionError, match="not fixed"):
        convert_opset(parse(BODY.format(how='mode = "cubic"'), 18, SHAPES), 10)


@pytest.mark.parametrize("scales", ["1, 1, 0.6, 0.6", "1, 1, 1.6, 0.6", "1, 1, 1.6, 2", "1, 1, 1, 1"])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("target", [9, 11, 19])
def test_version_10_rounds_up_where_an_axis_shrinks(scales: str, mode: str, target: int) -> None:
    model = parse(
        f'y = Resize<mode = "{mode}">(x, s)',
        10,
        "float[2,3,5,7] x) => (float[2,3,P,Q] y",
        stored=f"float[4] s = {{{scales}}}",
        ir_version=5,
    )
    assert_same(model, target, X)


@pytest.mark.parametrize("scales", ["1, 1, 0.6, 0.6", "1, 1, 1.6, 0.6", "1, 1, 1.6, 2"])
@pytest.mark.parametrize("way", ["floor", "ceil"])
def test_rounding_is_kept_on_the_way_to_version_10(scales: str, way: str) -> None:
    how = f'coordinate_transformation_mode = "asymmetric", mode = "nearest", nearest_mode = "{way}"'
    model = parse(
        f"y = Resize<{how}>(x, , s)", 13, "float[2,3,5,7] x) => (float[2,3,P,Q] y", stored=f"float[4] s = {{{scales}}}"
    )
    assert_same(model, 10, X)
