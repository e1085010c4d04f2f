"""float16 to float32 and back, bit for bit as NumPy does it, by arithmetic on whole blocks rather than elements.

Both ways scale by powers of two in float32, where the hardware rounds (half to even) and shifts subnormal numbers.
Blocks with infinities or NaN are NumPy's.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from entrepot.runtime.providers.cpu.blocks import SMALL

Array: TypeAlias = np.ndarray[Any, Any]

_F16, _F32 = np.dtype(np.float16), np.dtype(np.float32)
_BLOCK = 1 << 14
_UP = np.array(2.0**112, _F32)  # between the exponents' biases
_DOWN = np.array(2.0**-112, _F32)


def _i32(bits: int) -> Array:
    return np.array(bits, np.int32)


_SHIFT, _HALF = _i32(13), _i32(16)
_SIGN_AND_REST = _i32(0x8FFFE000 - (1 << 32))
_SIGN_OF_HALF, _MAGNITUDE, _EXPONENT = _i32(-0x8000), _i32(0x7FFFFFFF), _i32(0x7F800000)
_SMALLEST_NORMAL = _i32((127 - 14) << 23)
_THREE_HALVES = _i32((13 << 23) | (1 << 22))
_BEYOND = 65520.0  # what rounds to infinity
_TINY = np.array(2.0**-149, _F32)


def converted(x: Array, dtype: np.dtype[Any]) -> Array:
    """``x`` as another type; ``x`` itself when it has that type already."""
    if x.size > SMALL:
        if x.dtype == _F16 and dtype == _F32:
            return widened(x)
        if x.dtype == _F32 and dtype == _F16:
            return narrowed(x)
    return x.astype(dtype, copy=False)


def widened(x: Array) -> Array:
    """A float16 array as float32."""
    if not _keeps_subnormals():
        return x.astype(_F32)
    x = np.ascontiguousarray(x)
    y = np.empty(x.shape, _F32)
    source, target = x.reshape(-1), y.reshape(-1)
    for start in range(0, x.size, _BLOCK):
        _widen(source[start : start + _BLOCK], target[start : start + _BLOCK])
    return y


def _widen(x: Array, y: Array) -> None:
    bits = y.view(np.int32)
    bits[...] = x.view(np.int16)
    np.left_shift(bits, _SHIFT, out=bits)
    np.bitwise_and(bits, _SIGN_AND_REST, out=bits)
    np.multiply(y, _UP, out=y)
    if y.max() >= 65536 or y.min() <= -65536:  # the exponent of infinities and NaN, shifted like any other
        y[...] = x


def narrowed(x: Array) -> Array:
    """A float32 array as float16, rounded half to even."""
    if not _keeps_subnormals():
        return x.astype(_F16)
    x = np.ascontiguousarray(x)
    y = np.empty(x.shape, _F16)
    source, target = x.reshape(-1), y.reshape(-1)
    buffers = np.empty(_BLOCK, _F32), np.empty(_BLOCK, np.int32)
    for start in range(0, x.size, _BLOCK):
        block = source[start : start + _BLOCK]
        _narrow(block, target[start : start + _BLOCK], buffers[0][: block.size], buffers[1][: block.size])
    return y


def _narrow(x: Array, y: Array, size: Array, bits: Array) -> None:
    if not (x.max() < _BEYOND and x.min() > -_BEYOND):  # NaN compares false
        y[...] = x
        return
    # 3/2 of 2^13 times the power of two at or below |x|: adding it leaves ten bits after the leading one, rounded
    np.bitwise_and(x.view(np.int32), _EXPONENT, out=bits)
    bits.clip(_SMALLEST_NORMAL, _EXPONENT, out=bits)
    np.add(bits, _THREE_HALVES, out=bits)
    np.add(x, bits.view(np.float32), out=size)
    np.subtract(size, bits.view(np.float32), out=size)
    # the rounded number, brought to float16's bias: exact, but for the sign of zero, which is taken from x
    np.multiply(size, _DOWN, out=size)
    whole = size.view(np.int32)
    np.right_shift(x.view(np.int32), _HALF, out=bits)
    np.bitwise_and(bits, _SIGN_OF_HALF, out=bits)
    np.bitwise_and(whole, _MAGNITUDE, out=whole)
    np.right_shift(whole, _SHIFT, out=whole)
    np.bitwise_or(bits, whole, out=bits)
    np.copyto(y.view(np.int16), bits, casting="unsafe")


def _keeps_subnormals() -> bool:
    """Whether the processor computes with them; libraries built for fast mathematics turn that off when they load."""
    return bool(_TINY * _UP != 0)
