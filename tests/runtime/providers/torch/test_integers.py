"""Integers that torch does not compute with, or whose division ends the process when a machine does it."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import entrepot as ep

TYPES = {"int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64,
         "uint8": np.uint8, "uint16": np.uint16, "uint32": np.uint32, "uint64": np.uint64}  # fmt: skip


def run(op_type: str, a: np.ndarray, b: np.ndarray, attributes: str = "") -> Any:
    kind = a.dtype.name
    graph = f"g ({kind}[N] a, {kind}[N] b) => (y) {{ y = {op_type}{attributes}(a, b) }}"
    text = f'<ir_version: 10, opset_import: ["": 28]> {graph}'
    return ep.Session(onnx.parser.parse_model(text), providers=["torch"]).run({"a": a, "b": b})["y"]


def edges(dtype: Any) -> np.ndarray:
    limits = np.iinfo(dtype)
    near = [limits.min, limits.min + 1, limits.max - 1, limits.max, limits.max // 2, limits.max // 2 + 1, 1, 2, 3, 7]
    return np.array(near + ([-1, -2, -7] if limits.min else []), dtype)


def pairs(dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """Every edge with every other, often enough for the vectorised loops."""
    a, b = np.meshgrid(edges(dtype), edges(dtype))
    return np.tile(a.ravel(), 3), np.tile(b.ravel(), 3)


def divisors(dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    a, b = pairs(dtype)
    return a[b != 0], b[b != 0]


def quotient(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


@pytest.mark.parametrize("name", TYPES)
def test_division_truncates_and_the_smallest_by_minus_one_wraps(name: str) -> None:
    a, b = divisors(TYPES[name])
    bits = 8 * a.itemsize
    expected = np.array([quotient(int(x), int(y)) % (1 << bits) for x, y in zip(a, b, strict=True)], f"u{a.itemsize}")
    np.testing.assert_array_equal(run("Div", a, b), expected.view(a.dtype))


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("fmod", [0, 1])
def test_the_remainder_takes_the_sign_that_is_asked_for(name: str, fmod: int) -> None:
    a, b = divisors(TYPES[name])
    rest = [int(x) - quotient(int(x), int(y)) * int(y) if fmod else int(x) % int(y) for x, y in zip(a, b, strict=True)]
    np.testing.assert_array_equal(run("Mod", a, b, f"<fmod = {fmod}>"), np.array(rest, a.dtype))


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("op_type", ["Div", "Mod"])
def test_division_by_zero_goes_on(name: str, op_type: str) -> None:
    a = edges(TYPES[name])
    assert run(op_type, a, np.zeros_like(a)).shape == a.shape


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize(
    ("op_type", "function"),
    [("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply), ("Max", np.maximum), ("Min", np.minimum),
     ("Greater", np.greater), ("LessOrEqual", np.less_equal), ("Equal", np.equal)],
)  # fmt: skip
def test_arithmetic_and_comparisons_at_the_edges(name: str, op_type: str, function: Any) -> None:
    a, b = pairs(TYPES[name])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(run(op_type, a, b), function(a, b))


@pytest.mark.parametrize("name", ["uint16", "uint32", "uint64"])
@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_shifts_of_unsigned_numbers(name: str, direction: str) -> None:
    bits = 8 * np.dtype(TYPES[name]).itemsize
    a, b = (each.ravel() for each in np.meshgrid(edges(TYPES[name]), np.arange(bits + 3, dtype=TYPES[name])))
    expected = [
        (int(x) << int(n) if direction == "LEFT" else int(x) >> int(n)) % (1 << bits) for x, n in zip(a, b, strict=True)
    ]
    np.testing.assert_array_equal(run("BitShift", a, b, f'<direction = "{direction}">'), np.array(expected, a.dtype))
