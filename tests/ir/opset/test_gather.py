"""Triangles and gathered elements where the operators for them do not exist."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ir.opset.evaluate import assert_same, parse


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("size", ["N", "4"])
def test_a_triangle_of_booleans_needs_no_selection_of_booleans(size: str, upper: int) -> None:
    body = f"m = Greater(x, x2) t = Trilu<upper = {upper}>(m) y = Cast<to = 6>(t)"
    model = parse(body, 20, f"float[{size},4] x, float[1] x2) => (int32[{size},4] y")
    x = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
    assert_same(model, 11, x, np.zeros(1, np.float32))
