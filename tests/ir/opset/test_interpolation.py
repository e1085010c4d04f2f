"""The matrices of Resize against onnx's reference at the version the formulas are taken from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from entrepot.ir.opset.adapters.parts.interpolation import Interpolation, axis_matrix
from tests.ir.opset.evaluate import checked, parse

MODES = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric")


SCALES = (2.0, 1.5, 0.5, 0.6)
FRACTIONAL = ("align_corners", 0.6)
"""The reference aligns to 4.8 elements, what is written here to the 4 there are: see ``test_aligned_corners``."""


def reference(x: np.ndarray[Any, Any], scale: float, new: int, attributes: str) -> Any:
    signature = f"float[{x.size}] x) => (float[{new}] y"
    model = parse(f"y = Resize<{attributes}>(x, , s)", 19, signature, stored=f"float[1] s = {{{scale}}}")
    return ReferenceEvaluator(checked(model)).run(None, {"x": x})[0]


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize(("coordinates", "scale"), [(m, s) for m in MODES for s in SCALES if (m, s) != FRACTIONAL])
@pytest.mark.parametrize("antialias", [False, True])
def test_a_matrix_resizes_as_the_reference_does(mode: str, coordinates: str, scale: float, antialias: bool) -> None:
    x = np.random.default_rng(7).standard_normal(8).astype(np.float32)
    new = int(np.floor(x.size * scale))
    plan = Interpolation(mode, coordinates, "round_prefer_floor", -0.75, exclude_outside=False, antialias=antialias)
    spelled = f'mode = "{mode}", coordinate_transformation_mode = "{coordinates}", antialias = {int(antialias)}'
    want = reference(x, scale, new, spelled)
    np.testing.assert_allclose(axis_matrix(plan, x.size, new, scale) @ x, want, atol=2e-5)


@pytest.mark.parametrize("nearest", ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
@pytest.mark.parametrize("coordinates", MODES[:3])
@pytest.mark.parametrize("scale", [2.0, 1.5, 0.5])
def test_the_nearest_element_is_the_references(nearest: str, coordinates: str, scale: float) -> None:
    x = np.arange(6, dtype=np.float32)
    new = int(np.floor(x.size * scale))
    plan = Interpolation("nearest", coordinates, nearest, -0.75, exclude_outside=False, antialias=False)
    spelled = f'mode = "nearest", coordinate_transformation_mode = "{coordinates}", nearest_mode = "{nearest}"'
    np.testing.assert_array_equal(axis_matrix(plan, x.size, new, scale) @ x, reference(x, scale, new, spelled))
