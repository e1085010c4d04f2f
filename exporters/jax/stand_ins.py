"""Functions that take sizes which vary, in the place of Python's and NumPy's, which ask for numbers.

``len(x)``, ``x.squeeze()``, ``np.arange(x.shape[0])`` and ``math.sqrt(x.shape[0])`` fix a size where Python runs them.
While a function is traced that JAX does not take with symbols in the place of sizes, JAX answers them instead.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import math
import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np

from entrepot.exporters.jax import upstream
from entrepot.exporters.jax.dims import is_known

_LENGTH = builtins.len


@contextlib.contextmanager
def standing_in() -> Iterator[None]:
    """Inside, such functions take symbols."""
    with contextlib.ExitStack() as stack:
        for owner, name, function in _stand_ins():
            stack.enter_context(mock.patch.object(owner, name, function))
        yield


@functools.cache
def _stand_ins() -> list[tuple[Any, str, Any]]:
    """Each with the module that it is in and what it is called there."""
    modules = ((np, jnp), (np.fft, jnp.fft), (np.linalg, jnp.linalg))
    numpys = [
        (module, name, _Either(getattr(module, name), _OTHERS.get(name, getattr(other, name))))
        for module, other in modules
        for name in dir(other)
        if isinstance(getattr(module, name, None), _KINDS) and callable(getattr(other, name)) and name not in _KEPT
    ]
    maths = [(math, name, _Either(getattr(math, name), getattr(jnp, name))) for name in _MATHS]
    extremes = [(builtins, name, _Either(getattr(builtins, name), made, ())) for name, made in _EXTREMES.items()]
    others = [
        (builtins, "len", _length),
        (operator, "index", _Either(operator.index, lambda size: size, upstream.ASKING)),
        (*upstream.SQUEEZING, _squeezed),
    ]
    return [*numpys, *maths, *extremes, *others]


_KINDS = (np.ufunc, type(np.sum), type(np.tri), type(np.arange))
_KEPT = frozenset({"shape", "ndim", "size", "isscalar", "iscomplexobj", "isrealobj", "result_type", "can_cast"})
"""Functions of NumPy that take what is traced."""
_MATHS = ("sqrt", "log", "log2", "log10", "log1p", "exp", "exp2", "pow", "sin", "cos", "tan", "tanh")
_EXTREMES: dict[str, Callable[..., Any]] = {
    "min": lambda *sizes: functools.reduce(jax.core.min_dim, sizes),
    "max": lambda *sizes: functools.reduce(jax.core.max_dim, sizes),
}


class _Either:
    """A function, or another one where an argument is a symbol, or is traced.

    Args:
        function: It.
        other: The other one.
        never: What the names of modules begin with that never call that.
    """

    def __init__(
        self, function: Any, other: Callable[..., Any], never: tuple[str, ...] = ("jax.", "jaxlib.", "numpy.")
    ) -> None:
        self._function, self._other, self._never = function, other, never

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not (any(map(_is_open, args)) or any(map(_is_open, kwargs.values()))):
            return self._function(*args, **kwargs)
        caller = sys._getframe(1).f_globals.get("__name__", "")  # noqa: SLF001 - documented, if for few
        return (self._function if caller.startswith(self._never) else self._other)(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)


def _is_open(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return any(map(_is_open, value))
    return isinstance(value, jax.core.Tracer) or jax.export.is_symbolic_dim(value)


def _product(sizes: Any, *args: Any, **kwargs: Any) -> Any:
    """A size again, of sizes."""
    are_sizes = isinstance(sizes, tuple | list) and not any(isinstance(each, jax.core.Tracer) for each in sizes)
    return math.prod(sizes) if are_sizes and not args and not kwargs else jnp.prod(sizes, *args, **kwargs)


_OTHERS: dict[str, Callable[..., Any]] = {"prod": _product}


def _length(value: Any) -> Any:
    """The number of elements along the first axis, which may be a symbol."""
    return value.shape[0] if isinstance(value, jax.core.Tracer) and value.ndim else _LENGTH(value)


def _squeezed(x: Any, axis: Any) -> Any:
    """Without the axes of one element; those that vary need more, for else it would not be known how many are left."""
    if axis is None:
        axis = tuple(at for at, size in enumerate(x.shape) if (size == 1 if is_known(size) else not size >= 2))
    return jax.lax.squeeze(x, axis)
