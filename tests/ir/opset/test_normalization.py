"""Normalisation spelled out."""

from __future__ import annotations

import numpy as np
import pytest

from entrepot.ir.opset.convert import convert_opset
from tests.ir.opset.evaluate import parse, run


def test_statistics_of_doubles_are_not_narrowed_to_the_stash_type() -> None:
    model = parse("y = LayerNormalization(x, s)", 17, "double[2,4] x, double[4] s) => (double[2,4] y")
    x, s = np.random.default_rng(0).standard_normal((2, 4)), np.ones(4)
    centred = x - x.mean(1, keepdims=True)
    truth = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(run(convert_opset(model, 16), x, s)[0], truth, rtol=1e-12)


@pytest.mark.parametrize("target", [16, 9])
def test_saved_statistics_of_doubles_have_the_stash_type(target: int) -> None:
    model = parse("y, m = LayerNormalization(x, s)", 17, "double[2,4] x, double[4] s) => (double[2,4] y, float[2,1] m")
    x = np.random.default_rng(0).standard_normal((2, 4))
    _, mean = run(convert_opset(model, target), x, np.ones(4))
    assert mean.dtype == np.float32
    np.testing.assert_allclose(mean, x.mean(1, keepdims=True), rtol=1e-6)
