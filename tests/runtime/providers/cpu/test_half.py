"""Every float16, and float32 around every border between two of them, bit for bit as NumPy converts it."""

from __future__ import annotations

import numpy as np
import pytest

from entrepot.runtime.providers.cpu import half
from entrepot.runtime.providers.cpu.half import converted, narrowed, widened

ALL = np.arange(1 << 16).astype(np.uint16).view(np.float16)
FINITE = ALL[np.isfinite(ALL)]


def bits(x: np.ndarray) -> np.ndarray:
    return x.view(np.uint16 if x.dtype == np.float16 else np.uint32)


@pytest.fixture(autouse=True)
def _quiet() -> object:
    with np.errstate(all="ignore"):
        yield


@pytest.mark.parametrize("x", [ALL, FINITE, FINITE[::-1], FINITE[:60001]], ids=["all", "finite", "backwards", "odd"])
def test_every_float16_is_widened_exactly(x: np.ndarray) -> None:
    np.testing.assert_array_equal(bits(widened(x)), bits(x.astype(np.float32)))


@pytest.mark.parametrize("direction", [0, 1, -1])
def test_halfway_between_two_float16_is_rounded_to_even_and_beside_it_to_the_nearer(direction: int) -> None:
    exact = FINITE.astype(np.float64)
    middle = ((exact + np.nextafter(FINITE, np.float16(np.inf)).astype(np.float64)) / 2).astype(np.float32)
    middle = middle[np.isfinite(middle)]
    x = np.nextafter(middle, np.float32(direction * np.inf)) if direction else middle
    np.testing.assert_array_equal(bits(narrowed(x)), bits(x.astype(np.float16)))


@pytest.mark.parametrize("exponents", [(95, 143), (0, 256), (110, 115)])
def test_any_float32_is_narrowed_as_numpy_does(exponents: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    mantissa = rng.integers(0, 1 << 32, 200_000, dtype=np.uint64).astype(np.uint32) & np.uint32(0x807FFFFF)
    x = (mantissa | (rng.integers(*exponents, 200_000).astype(np.uint32) << np.uint32(23))).view(np.float32)
    np.testing.assert_array_equal(bits(narrowed(x)), bits(x.astype(np.float16)))


def test_shape_and_strides_do_not_matter() -> None:
    x = np.random.default_rng(0).standard_normal((50, 60, 4)).astype(np.float32)
    for view in (x, x.T, x[:, ::2]):
        narrow = converted(view, np.dtype(np.float16))
        np.testing.assert_array_equal(narrow, view.astype(np.float16))
        np.testing.assert_array_equal(converted(narrow.T, np.dtype(np.float32)), narrow.T.astype(np.float32))


def test_where_subnormal_numbers_are_flushed_numpy_converts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(half, "_TINY", np.array(0, np.float32))  # as it would come out
    monkeypatch.setattr(half, "_widen", None)
    monkeypatch.setattr(half, "_narrow", None)
    np.testing.assert_array_equal(bits(narrowed(widened(FINITE))), bits(FINITE))
