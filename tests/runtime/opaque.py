"""Arrays as a device or a tracer has them: no NumPy, no attributes, no element ever read on the host."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from entrepot.runtime.providers.cpu.backend import NUMPY


class HostRead(TypeError):  # noqa: N818 - what happened, not what kind of error it is
    """A kernel looked at elements that are on a device."""


class Opaque:
    """An array that only its backend can look into; the operators and basic indexing of the protocol work on it."""

    __slots__ = ("_array",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, array: np.ndarray) -> None:
        self._array = np.asarray(array)

    def __getitem__(self, index: Any) -> Opaque:
        parts = index if isinstance(index, tuple) else (index,)
        if not all(isinstance(part, int | np.integer | slice | type(None) | type(...)) for part in parts):
            raise HostRead(f"indexed by {index!r}: only integers and slices are basic")
        return Opaque(self._array[index])

    def _refused(self, *_: Any, **__: Any) -> Any:
        raise HostRead("elements, sizes and types of a device's array are for the backend to say")

    __array__ = __bool__ = __int__ = __float__ = __index__ = __len__ = __iter__ = __contains__ = _refused
    __array_ufunc__ = None

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"an attribute '{name}' of arrays is not in the protocol")


def bare(value: Any) -> Any:
    """What an opaque value, or a structure of them, holds."""
    if isinstance(value, Opaque):
        return value._array
    if isinstance(value, list):
        return [bare(member) for member in value]
    return tuple(map(bare, value)) if isinstance(value, tuple) else value


def wrapped(value: Any) -> Any:
    """Arrays, and arrays in lists and tuples, as opaque ones."""
    if isinstance(value, np.ndarray | np.generic):
        return Opaque(value)
    if isinstance(value, list):
        return [wrapped(member) for member in value]
    return tuple(map(wrapped, value)) if isinstance(value, tuple) else value


def _operation(function: Callable[..., Any]) -> Callable[..., Any]:
    def apply(*operands: Any) -> Any:
        if not all(isinstance(each, Opaque | int | float | bool) for each in operands):
            return NotImplemented
        with np.errstate(all="ignore"):
            return wrapped(function(*map(bare, operands)))

    return apply


def _swapped(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y: function(y, x)


for _name in (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
    "matmul",
):
    _function = getattr(operator, f"__{_name}__")
    setattr(Opaque, f"__{_name}__", _operation(_function))
    setattr(Opaque, f"__r{_name}__", _operation(_swapped(_function)))
for _name in ("eq", "ne", "lt", "le", "gt", "ge", "neg", "invert", "abs"):
    setattr(Opaque, f"__{_name}__", _operation(getattr(operator, f"__{_name}__")))


class OpaqueBackend:
    """The backend protocol over opaque arrays: NumPy's backend behind a wall."""

    name = "opaque"

    def shape(self, x: Opaque) -> tuple[int, ...]:
        return _held(x).shape

    def dtype(self, x: Opaque) -> np.dtype:
        return _held(x).dtype

    def asarray(self, value: Any, dtype: Any = None) -> Opaque:
        return value if isinstance(value, Opaque) and dtype is None else Opaque(np.asarray(bare(value), dtype))

    def __getattr__(self, name: str) -> Any:
        function = getattr(NUMPY, name)

        def call(*arguments: Any, **keywords: Any) -> Any:
            arrays = [each for each in [*arguments, *keywords.values()] if isinstance(each, np.ndarray)]
            if arrays and name not in ("full", "scalar"):
                raise HostRead(f"{name} of an array that is not on the device")
            return wrapped(function(*map(bare, arguments), **{key: bare(value) for key, value in keywords.items()}))

        return call


def _held(x: Any) -> np.ndarray:
    if not isinstance(x, Opaque):
        raise HostRead(f"{type(x).__name__} is not an array of this backend")
    return x._array


OPAQUE: Any = OpaqueBackend()
