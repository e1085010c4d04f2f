"""The backend protocol over NumPy: what the shared meanings run on for the cpu and reference providers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from entrepot.runtime import room
from entrepot.runtime.kernels.backend import Array, Backend
from entrepot.runtime.providers.cpu.blocks import maximum, minimum, select
from entrepot.runtime.providers.cpu.erf import erf
from entrepot.runtime.providers.cpu.half import converted
from entrepot.runtime.providers.cpu.products import matmul

NumpyArray = np.ndarray[Any, Any]

# NumPy's stubs want a literal for ``keepdims``
_sum: Callable[..., Array] = np.add.reduce
_prod: Callable[..., Array] = np.multiply.reduce
_max: Callable[..., Array] = np.maximum.reduce
_min: Callable[..., Array] = np.minimum.reduce
_arange: Callable[..., Array] = np.arange


class NumpyBackend:
    """NumPy's functions under the protocol's names; only where the two differ is anything written out."""

    name = "numpy"

    # making arrays
    @staticmethod
    def asarray(value: Any, dtype: np.dtype[Any] | None = None) -> Array:
        return np.asarray(value, dtype)

    @staticmethod
    def scalar(value: float, *, like: Array) -> Array:
        return np.asarray(value).astype(like.dtype)

    @staticmethod
    def full(shape: Sequence[int], value: Any, dtype: np.dtype[Any]) -> Array:
        return room.full(shape, value, dtype)

    @staticmethod
    def arange(start: Any, stop: Any, step: Any, dtype: np.dtype[Any]) -> Array:
        room.claim((len(range(start, stop, step)),))
        return _arange(start, stop, step, dtype)

    # asking arrays
    @staticmethod
    def shape(x: Array) -> tuple[int, ...]:
        return x.shape

    @staticmethod
    def dtype(x: Array) -> np.dtype[Any]:
        return x.dtype

    # element types
    @staticmethod
    def astype(x: Array, dtype: np.dtype[Any]) -> Array:
        return converted(x, dtype)

    @staticmethod
    def bitcast(x: Array, dtype: np.dtype[Any]) -> Array:
        return np.asarray(x).view(dtype)

    # shape and movement
    @staticmethod
    def reshape(x: Array, shape: Sequence[int]) -> Array:
        return x.reshape(shape)

    transpose = staticmethod(np.transpose)
    expand_dims = staticmethod(np.expand_dims)
    squeeze = staticmethod(np.squeeze)
    flip = staticmethod(np.flip)

    @staticmethod
    def broadcast_to(x: Array, shape: Sequence[int]) -> Array:
        room.claim(shape, x.dtype.itemsize)
        return np.broadcast_to(x, shape)

    @staticmethod
    def concat(xs: Sequence[Array], axis: int) -> Array:
        room.claim((sum(x.nbytes for x in xs),), 1)
        return np.concatenate(xs, axis)

    @staticmethod
    def stack(xs: Sequence[Array], axis: int) -> Array:
        room.claim((sum(x.nbytes for x in xs),), 1)
        return np.stack(xs, axis)

    @staticmethod
    def tile(x: Array, repeats: Sequence[int]) -> Array:
        room.claim(repeats, x.nbytes)
        return np.tile(x, repeats)

    @staticmethod
    def split(x: Array, sizes: Sequence[int], axis: int) -> tuple[Array, ...]:
        return tuple(np.split(x, np.cumsum(sizes)[:-1], axis)) if len(sizes) else ()

    @staticmethod
    def pad(x: Array, widths: Sequence[tuple[int, int]], mode: str, value: Any = 0) -> Array:
        if mode == "constant":
            return pad_constant(x, widths, value)
        room.claim([size + sum(width) for size, width in zip(x.shape, widths, strict=True)], x.dtype.itemsize)
        return np.pad(x, widths, mode)  # type: ignore[call-overload]  # a mode by name

    # picking and placing
    @staticmethod
    def take(x: Array, indices: Array, axis: int) -> Array:
        room.claim((indices.size,), x.nbytes // max(x.shape[axis], 1))
        return x.take(indices, axis)

    take_along_axis = staticmethod(np.take_along_axis)
    nonzero = staticmethod(np.nonzero)

    @staticmethod
    def where(condition: Array, x: Array, y: Array) -> Array:
        return select(condition, x, y) if x.dtype == y.dtype else np.where(condition, x, y)

    @staticmethod
    def index(x: Array, indices: Sequence[Array]) -> Array:
        slice_bytes = math.prod(x.shape[len(indices) :]) * x.dtype.itemsize
        room.claim(np.broadcast_shapes(*(each.shape for each in indices)), slice_bytes)
        return x[tuple(indices)]

    @staticmethod
    def scatter(x: Array, indices: Sequence[Array], updates: Array, reduction: str = "none") -> Array:
        result = np.array(x)
        if reduction == "none":
            result[tuple(indices)] = updates
        else:
            _REDUCTIONS[reduction].at(result, tuple(indices), updates)
        return result

    # elementwise
    abs = staticmethod(np.abs)
    sign = staticmethod(np.sign)
    exp = staticmethod(np.exp)
    expm1 = staticmethod(np.expm1)
    log = staticmethod(np.log)
    log1p = staticmethod(np.log1p)
    sqrt = staticmethod(np.sqrt)
    erf = staticmethod(erf)
    sin = staticmethod(np.sin)
    cos = staticmethod(np.cos)
    tan = staticmethod(np.tan)
    asin = staticmethod(np.arcsin)
    acos = staticmethod(np.arccos)
    atan = staticmethod(np.arctan)
    sinh = staticmethod(np.sinh)
    cosh = staticmethod(np.cosh)
    tanh = staticmethod(np.tanh)
    asinh = staticmethod(np.arcsinh)
    acosh = staticmethod(np.arccosh)
    atanh = staticmethod(np.arctanh)
    floor = staticmethod(np.floor)
    ceil = staticmethod(np.ceil)
    rint = staticmethod(np.rint)
    isnan = staticmethod(np.isnan)
    isinf = staticmethod(np.isinf)
    minimum = staticmethod(minimum)
    maximum = staticmethod(maximum)
    fmod = staticmethod(np.fmod)

    @staticmethod
    def power(x: Array, y: Array) -> Array:
        return np.power(x, y.astype(x.dtype, copy=False))

    # reductions
    @staticmethod
    def sum(x: Array, axis: tuple[int, ...], *, keepdims: bool = False) -> Array:
        return _sum(x, axis, x.dtype, keepdims=keepdims)

    @staticmethod
    def prod(x: Array, axis: tuple[int, ...], *, keepdims: bool = False) -> Array:
        return _prod(x, axis, x.dtype, keepdims=keepdims)

    @staticmethod
    def max(x: Array, axis: tuple[int, ...], *, keepdims: bool = False) -> Array:
        if x.size:
            return _max(x, axis, keepdims=keepdims)
        return _max(x, axis, keepdims=keepdims, initial=lowest(x.dtype))

    @staticmethod
    def min(x: Array, axis: tuple[int, ...], *, keepdims: bool = False) -> Array:
        if x.size:
            return _min(x, axis, keepdims=keepdims)
        return _min(x, axis, keepdims=keepdims, initial=highest(x.dtype))

    @staticmethod
    def argmax(x: Array, axis: int) -> Array:
        return np.argmax(x, axis)

    @staticmethod
    def argmin(x: Array, axis: int) -> Array:
        return np.argmin(x, axis)

    @staticmethod
    def cumsum(x: Array, axis: int) -> Array:
        return np.cumsum(x, axis, x.dtype)

    @staticmethod
    def cumprod(x: Array, axis: int) -> Array:
        return np.cumprod(x, axis, x.dtype)

    @staticmethod
    def argsort(x: Array, axis: int, *, descending: bool = False) -> Array:
        if not descending:
            return np.argsort(x, axis, kind="stable")
        # sorting the mirror image and reading it backwards keeps equal values in their first order
        mirrored = np.argsort(np.flip(x, axis), axis, kind="stable")
        return np.flip(x.shape[axis] - 1 - mirrored, axis)

    # linear algebra
    @staticmethod
    def matmul(x: Array, y: Array) -> Array:
        return matmul(x, y)

    @staticmethod
    def einsum(equation: str, xs: Sequence[Array]) -> Array:
        return np.einsum(equation, *xs)


_REDUCTIONS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def lowest(dtype: np.dtype[Any]) -> Any:
    """The neutral element of a maximum."""
    if dtype.kind in "iu":
        return np.iinfo(dtype).min
    return False if dtype.kind == "b" else dtype.type(-np.inf)


def highest(dtype: np.dtype[Any]) -> Any:
    """The neutral element of a minimum."""
    if dtype.kind in "iu":
        return np.iinfo(dtype).max
    return True if dtype.kind == "b" else dtype.type(np.inf)


def pad_constant(x: NumpyArray, widths: Sequence[tuple[int, int]], value: Any) -> NumpyArray:
    """Several times faster than ``np.pad``, which writes each border on its own."""
    shape = [before + size + after for size, (before, after) in zip(x.shape, widths, strict=True)]
    inner = tuple(slice(before, before + size) for size, (before, _) in zip(x.shape, widths, strict=True))
    result = room.full(shape, value, x.dtype)
    result[inner] = x
    return result


NUMPY: Backend = NumpyBackend()
