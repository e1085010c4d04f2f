"""Bits, shifts and comparisons of whole ranges of integers, where no operator took them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from entrepot.ir.opset.convert import convert_opset
from tests.ir.opset.evaluate import assert_same, parse, run

TYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
UNSIGNED = TYPES[4:]


def _numbers(dtype: str, seed: int, count: int = 40) -> np.ndarray[Any, Any]:
    """Random numbers, the extremes and those near zero."""
    info = np.iinfo(dtype)
    drawn = np.random.default_rng(seed).integers(info.min, info.max, count, dtype, endpoint=True)
    edges = np.array([info.min, info.max, 0, 1, info.max - 1, info.min + 1, info.max // 2], dtype)
    return np.random.default_rng(seed).permutation(np.concatenate([drawn, edges]))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("operator", ["BitwiseAnd", "BitwiseOr", "BitwiseXor"])
@pytest.mark.parametrize("target", [7, 11, 17])
def test_bits_are_combined_by_digits(dtype: str, operator: str, target: int) -> None:
    model = parse(f"y = {operator}(a, b)", 18, f"{dtype}[3,N] a, {dtype}[N] b) => ({dtype}[3,N] y")
    a = np.stack([_numbers(dtype, seed) for seed in range(3)])
    assert_same(model, target, a, _numbers(dtype, 4))


def test_single_numbers_have_digits_too() -> None:
    model = parse("y = BitwiseXor(a, b)", 18, "int64 a, int64 b) => (int64 y")
    assert_same(model, 7, np.array(-12345678901234), np.array(987654321098765))


@pytest.mark.parametrize("dtype", ["uint8", "uint32", "uint64"])
@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize("target", [7, 10])
def test_computed_shifts_multiply_or_divide(dtype: str, direction: str, target: int) -> None:
    signature = f"{dtype}[N] a, {dtype}[N] b) => ({dtype}[N] y"
    model = parse(f'y = BitShift<direction = "{direction}">(a, b)', 11, signature)
    a = _numbers(dtype, 0)
    assert_same(model, target, a, np.random.default_rng(1).integers(0, np.iinfo(dtype).bits, len(a), dtype))


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_a_shift_by_the_width_or_more_leaves_nothing(direction: str) -> None:
    model = parse(f'y = BitShift<direction = "{direction}">(a, b)', 11, "uint64[N] a, uint64[N] b) => (uint64[N] y")
    after = convert_opset(model, 10)
    huge = np.array([64, 65, 1 << 32, (1 << 64) - 1], np.uint64)
    assert not run(after, np.full(4, (1 << 64) - 1, np.uint64), huge)[0].any()


@pytest.mark.parametrize("operator", ["Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual"])
@pytest.mark.parametrize("dtype", ["int64", "uint64", "uint32"])
@pytest.mark.parametrize("target", [7, 8, 10])
def test_integers_are_compared_exactly(operator: str, dtype: str, target: int) -> None:
    model = parse(f"y = {operator}(a, b)", 12, f"{dtype}[N,1] a, {dtype}[N] b) => (bool[N,N] y")
    a = np.concatenate([_numbers(dtype, 0, 10), _numbers(dtype, 1, 10) // 2])
    assert_same(model, target, a[:, None], np.random.default_rng(2).permutation(a))


@pytest.mark.parametrize("dtype", ["uint32", "uint64", "int64"])
def test_the_remainder_of_large_integers(dtype: str) -> None:
    model = parse("y = Mod(a, b)", 13, f"{dtype}[N] a, {dtype}[N] b) => ({dtype}[N] y")
    divisors = _numbers(dtype, 1)
    assert_same(model, 7, _numbers(dtype, 0), np.where(divisors == 0, 1, divisors).astype(dtype))
