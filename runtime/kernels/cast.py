"""Conversions between element types, with ONNX's own rules where they are not the framework's.

Framework conversions overflow float 8 to NaN or infinity; ONNX saturates unless told not to. Float 4 and float 6 always
saturate, as ml_dtypes does. Integers drop their high bits; floats are cut off toward zero.
"""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir

from entrepot.ir.errors import InputError
from entrepot.runtime.kernels.backend import Array, Backend
from entrepot.runtime.kernels.precision import is_floating
from entrepot.runtime.kernels.table import shared

NumpyArray = np.ndarray[Any, Any]

_SATURATING = {
    np.dtype(kind): np.float32(ml_dtypes.finfo(kind).max)  # type: ignore[no-untyped-call]
    for kind in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2, ml_dtypes.float8_e5m2fnuz)
}
_POWERS_OF_TWO = np.dtype(ml_dtypes.float8_e8m0fnu)


def element_type(code: int) -> np.dtype[Any]:
    """The NumPy type that an ONNX element type code stands for; strings are objects."""
    kind = ir.DataType(code)
    return np.dtype(object) if kind == ir.DataType.STRING else np.dtype(kind.numpy())


@shared("Cast", 28)
def cast(xp: Backend, input: Array, *, to: int, round_mode: str = "up", saturate: int = 1) -> Array:
    """The same values as another element type."""
    return convert(xp, input, element_type(to), round_mode=round_mode, saturate=saturate)


@shared("CastLike", 25)
def cast_like(xp: Backend, input: Array, target_type: Array, *, round_mode: str = "up", saturate: int = 1) -> Array:
    """The same values as the element type of ``target_type``."""
    return convert(xp, input, xp.dtype(target_type), round_mode=round_mode, saturate=saturate)


def convert(xp: Backend, x: Array, dtype: np.dtype[Any], *, round_mode: str = "up", saturate: int = 1) -> Array:
    """``x`` as ``dtype`` by ONNX's rules; to and from strings, which only the host has, ``xp`` is NumPy's backend."""
    source = xp.dtype(x)
    if source == dtype:
        return x
    if source.kind == "O":
        return convert(xp, xp.asarray(_parse(np.asarray(x), dtype)), dtype, saturate=saturate)
    if dtype.kind == "O":
        return xp.asarray(_spell(np.asarray(x)))
    if dtype == _POWERS_OF_TWO:
        return _to_power_of_two(xp, x, round_mode, saturate)
    if saturate and dtype in _SATURATING:
        wide = x if source in (np.float32, np.float64) else xp.astype(x, np.dtype(np.float32))
        limit = xp.scalar(float(_SATURATING[dtype]), like=wide)
        x = xp.minimum(xp.maximum(wide, -limit), limit)  # NaN stays
    return xp.astype(x, dtype)


@shared("BitCast", 26)
def bit_cast(xp: Backend, input: Array, *, to: int) -> Array:
    """The same bits as another element type of the same width."""
    dtype, bits = element_type(to), ir.DataType(to).bitwidth
    given = ir.DataType.from_numpy(xp.dtype(input)).bitwidth
    if bits != given:
        raise InputError(f"BitCast from {xp.dtype(input)} ({given} bits) to {dtype} ({bits} bits)")
    return xp.bitcast(input, dtype)


def _parse(texts: NumpyArray, dtype: np.dtype[Any]) -> NumpyArray:
    """Numbers from strings: exactly where integers are wanted and written, else through float64."""
    if dtype.kind in "iu":
        numbers = [_integer(text) for text in texts.reshape(-1)]
        return np.array(numbers, np.uint64 if dtype == np.uint64 else np.int64).reshape(texts.shape)
    return np.array([float(text) for text in texts.reshape(-1)], np.float64).reshape(texts.shape)


def _integer(text: str) -> int:
    return int(text) if re.fullmatch(r"\s*[+-]?\d+\s*", text) else int(float(text))


def _spell(x: NumpyArray) -> NumpyArray:
    """The shortest decimal that reads back as the same number."""
    if is_floating(x.dtype) and x.dtype.isbuiltin != 1:
        x = x.astype(np.float32)
    elif not is_floating(x.dtype) and x.dtype != np.uint64:
        x = x.astype(np.int64)
    return x.astype(np.str_).astype(object)


def _to_power_of_two(xp: Backend, x: Array, round_mode: str, saturate: int) -> Array:
    """Float8e8m0: only an exponent. Negative numbers and NaN have none, and give NaN."""
    least = {"up": 1, "nearest": 1 << 51, "down": 1 << 52}  # the fraction from which on it is the next power
    if round_mode not in least:
        raise InputError(f"round_mode is up, down or nearest, not {round_mode!r}")
    wide = xp.astype(x, np.dtype(np.float64))
    bits = xp.bitcast(wide, np.dtype(np.int64))

    def number(value: int) -> Array:
        return xp.scalar(value, like=bits)

    fraction, exponent = bits & number((1 << 52) - 1), (bits >> number(52)) & number(0x7FF)
    raised = xp.astype(fraction >= number(least[round_mode]), np.dtype(np.int64))
    code = exponent + number(127 - 1023) + raised
    clipped = xp.minimum(xp.maximum(code, number(0)), number(254))
    code = xp.where(code == clipped, code, clipped if saturate else number(255))
    none = xp.isnan(wide) | (wide < xp.scalar(0, like=wide))
    code = xp.where(none, number(255), code)
    return xp.bitcast(xp.astype(code, np.dtype(np.uint8)), _POWERS_OF_TWO)
