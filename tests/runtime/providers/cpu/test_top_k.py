"""A few of many: found one after the other where that is exact, else like the shared meaning."""

from __future__ import annotations

import numpy as np
import pytest

from entrepot.runtime.kernels import selection as shared
from entrepot.runtime.providers.cpu.backend import NUMPY
from entrepot.runtime.providers.cpu.native.selection import top_k

RNG = np.random.default_rng(0)
PLAIN = RNG.standard_normal((4, 300)).astype(np.float32)


def changed(*values: float) -> np.ndarray:
    x = PLAIN.copy()
    for index, value in enumerate(values):
        x[1, 7 + 31 * index] = value
    return x


INPUTS = {
    "plain": PLAIN,
    "doubles": PLAIN.astype(np.float64),
    "many equal ones": np.round(PLAIN),
    "all equal": np.zeros((3, 200), np.float32),
    "infinities": changed(np.inf, -np.inf, np.inf),
    "nan": changed(np.nan, np.nan),
    "only minus infinity": np.full((2, 200), -np.inf, np.float32),
    "both zeros": np.where(np.arange(256) % 2, np.float32(0), np.float32(-0.0))[None],
    "integers": RNG.integers(-9, 9, (4, 300)),
    "no rows": np.zeros((0, 300), np.float32),
}


@pytest.mark.parametrize("x", INPUTS.values(), ids=INPUTS)
@pytest.mark.parametrize("count", [1, 2, 8, 9])
@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("axis", [-1, 0])
def test_few_of_many_are_those_of_the_shared_meaning(x: np.ndarray, count: int, largest: int, axis: int) -> None:
    x = x if axis else x.T
    before, k = x.copy(), np.array([count])
    expected = shared.top_k(NUMPY, x, k, axis=axis, largest=largest)
    for found, wanted in zip(top_k(x, k, axis=axis, largest=largest), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
        assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(x, before)
