"""Resize by scales that are not whole."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ir.opset.down.case import f32
from tests.ir.opset.evaluate import assert_same, parse


@pytest.mark.parametrize("scale", [0.3, 0.6, 1.3, 1.7])
@pytest.mark.parametrize("nearest", ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "asymmetric", "align_corners"])
def test_the_nearest_element_at_an_odd_scale_is_the_runtimes(scale: float, nearest: str, coordinates: str) -> None:
    size = int(8 * np.float32(scale))
    kind = f'mode = "nearest", coordinate_transformation_mode = "{coordinates}", nearest_mode = "{nearest}"'
    signature = f"float[1,1,8,8] x) => (float[1,1,{size},{size}] y"
    model = parse(f"y = Resize<{kind}>(x, , s)", 13, signature, stored=f"float[4] s = {{1, 1, {scale}, {scale}}}")
    assert_same(model, 9, f32(1, 1, 8, 8))
