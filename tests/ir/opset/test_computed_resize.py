"""Resize to sizes known at run time only, where older versions know asymmetric scales alone."""

from __future__ import annotations

import numpy as np
import pytest

from entrepot.ir.errors import ConversionError
from entrepot.ir.opset.convert import convert_opset
from tests.ir.opset.evaluate import assert_same, op_types, parse, run

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


@pytest.mark.parametrize("target", [7, 9, 10])
@pytest.mark.parametrize("size", [(10, 14), (4, 9), (5, 7)])
def test_an_axis_that_turns_out_to_stay_is_not_shifted_by_half_a_pixel(target: int, size: tuple[int, int]) -> None:
    how = 'coordinate_transformation_mode = "tf_half_pixel_for_nn", mode = "linear"'
    model = parse(f"y = Resize<{how}>(x, , , s)", 13, "float[A,B,H,W] x, int64[4] s) => (float[P,Q,R,S] y")
    assert_same(model, target, X, np.array([2, 3, *size]))


MIXED = [
    'mode = "cubic"',
    'mode = "cubic", cubic_coeff_a = -0.5, exclude_outside = 1',
    'mode = "linear", coordinate_transformation_mode = "half_pixel_symmetric"',
    'mode = "linear", antialias = 1',
    'mode = "cubic", antialias = 1, cubic_coeff_a = -0.5',
    'mode = "cubic", antialias = 1, exclude_outside = 1',
]


@pytest.mark.parametrize("how", MIXED)
@pytest.mark.parametrize("target", [18, 17, 10, 9])
@pytest.mark.parametrize("size", [(10, 14), (3, 4), (1, 2)])
def test_elements_are_mixed_at_run_time(how: str, target: int, size: tuple[int, int]) -> None:
    assert_same(parse(BODY.format(how=how), 19, SHAPES), target, X, np.array(size))


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("target", [17, 10, 9])
def test_one_scale_for_all_axes_is_found_at_run_time(policy: str, mode: str, target: int) -> None:
    how = f'mode = "{mode}", keep_aspect_ratio_policy = "{policy}", axes = [3, 2]'
    model = parse(f"y = Resize<{how}>(x, , , s)", 18, SHAPES)
    assert_same(model, target, X, np.array([9, 4]))
    assert_same(model, target, X, np.array([3, 12]))


REGION = 'coordinate_transformation_mode = "tf_crop_and_resize", extrapolation_value = 7.0'


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("target", [17, 12, 10, 9])
@pytest.mark.parametrize("known", [False, True])
def test_a_region_of_some_axes_is_resized(mode: str, target: int, known: bool) -> None:
    region = [0.2, -0.3, 0.9, 0.6]
    stored = f"float[4] r = {{{', '.join(map(str, region))}}}" if known else ""
    given = "" if known else ", float[4] r"
    signature = f"float[N,3,H,W] x{given}, int64[2] s) => (float[N,3,P,Q] y"
    model = parse(f'y = Resize<{REGION}, mode = "{mode}", axes = [3, 2]>(x, r, , s)', 18, signature, stored=stored)
    roi = () if known else (np.array(region, np.float32),)
    assert_same(model, target, X, *roi, np.array([4, 6]))
    assert_same(model, target, X, *roi, np.array([1, 11]))


def test_a_scaled_region_is_refused() -> None:
    signature = "float[1,1,4,4] x, float[8] r, float[4] s) => (float[1,1,P,Q] y"
    with pytest.raises(ConversionError, match="runtimes disagree"):
        convert_opset(parse(f"y = Resize<{REGION}>(x, r, s)", 13, signature), 10)


@pytest.mark.parametrize("how", [how for how in MIXED if "symmetric" not in how])
@pytest.mark.parametrize("fixed", [False, True])
def test_what_is_not_a_number_reaches_its_neighbours_only(how: str, fixed: bool) -> None:
    x = X.copy()
    x[:, :, 1, 2], x[:, :, 3, 6] = np.nan, np.inf
    sizes = ("float[2,3,5,7] x", "float[2,3,3,9] y") if fixed else ("float[N,3,H,W] x", "float[N,3,P,Q] y")
    model = parse(BODY.format(how=how), 19, f"{sizes[0]}, int64[2] s) => ({sizes[1]}")
    (want,), (have,) = (run(item, x, np.array([3, 9])) for item in (model, convert_opset(model, 10)))
    finite = np.isfinite(want)  # onnxruntime multiplies by weights of 0 as well, so it has a few more NaN
    assert finite.any()
    np.testing.assert_allclose(have[finite], want[finite], rtol=1e-4, atol=1e-5)
    assert not np.isfinite(have).all()


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
