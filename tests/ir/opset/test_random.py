"""Dropout in training below the opset that has it."""

from __future__ import annotations

import numpy as np
import pytest

from entrepot.ir.opset.convert import convert_opset
from tests.ir.opset.evaluate import parse, run


@pytest.mark.parametrize("target", [11, 9, 7])
def test_training_drops_at_the_ratio_and_scales_what_is_kept(target: int) -> None:
    model = parse(
        "y, m = Dropout<seed = 3>(x, r, t)",
        13,
        "float[N] x) => (float[N] y, bool[N] m",
        stored="float r = {0.25}, bool t = {1}",
    )
    y, kept = run(convert_opset(model, target), np.full(10_000, 3, np.float32))
    np.testing.assert_allclose(y, np.where(kept, 4, 0))
    assert 0.72 < kept.mean() < 0.78


def test_everything_is_dropped_at_a_ratio_of_one() -> None:
    model = parse("y = Dropout(x, r, t)", 13, "float[N] x) => (float[N] y", stored="float r = {1}, bool t = {1}")
    assert not run(convert_opset(model, 9), np.ones(5, np.float32))[0].any()
