"""Functions that take sizes which vary, for those of Python, NumPy and JAX that ask for numbers.

``len(x)``, ``np.arange(x.shape[0])``, ``math.sqrt(x.shape[0])`` and ``x.squeeze()`` fix a size where Python runs them.
In copies of a user's functions these names stand for others, which JAX answers where an argument is a symbol or traced.
"""

from __future__ import annotations

import builtins
import functools
import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from entrepot.exporters.jax.dims import is_known
from entrepot.exporters.jax.followed import circles
from entrepot.exporters.jax.followed.prefixes import associative_scan


@functools.cache
def answers() -> dict[int, Any]:
    """By the ``id`` of the function that each stands for; those are never let go."""
    return {id(function): answer for function, answer in _pairs()}


@functools.cache
def own_builtins() -> dict[str, Any]:
    """Python's functions, in copies."""
    extremes = {name: _Either(getattr(builtins, name), made, ()) for name, made in _EXTREMES.items()}
    return {**vars(builtins), "len": length, **extremes}


def _pairs() -> Iterator[tuple[Any, Any]]:
    for module, other in ((np, jnp), (np.fft, jnp.fft), (np.linalg, jnp.linalg)):
        for name in dir(other):
            function = getattr(module, name, None)
            if isinstance(function, _KINDS) and callable(getattr(other, name)) and name not in _KEPT:
                yield function, _Either(function, _OTHERS.get(name, getattr(other, name)))
    for name in _MATHS:
        yield getattr(math, name), _Either(getattr(math, name), getattr(jnp, name))
    yield operator.index, _Either(operator.index, lambda size: size)
    yield jnp.squeeze, _squeezed
    yield jax.lax.associative_scan, associative_scan
    yield jax.lax.scan, _scanned
    yield jnp.searchsorted, _searched
    yield jnp.take, circles.take
    yield jnp.pad, circles.pad


_KINDS = (np.ufunc, type(np.sum), type(np.tri), type(np.arange))
_KEPT = frozenset({"shape", "ndim", "size", "isscalar", "iscomplexobj", "isrealobj", "result_type", "can_cast"})
"""Functions of NumPy that take what is traced."""
_MATHS = ("sqrt", "log", "log2", "log10", "log1p", "exp", "exp2", "pow", "sin", "cos", "tan", "tanh")
_EXTREMES: dict[str, Callable[..., Any]] = {
    "min": lambda *sizes: functools.reduce(jax.core.min_dim, sizes if len(sizes) > 1 else sizes[0]),
    "max": lambda *sizes: functools.reduce(jax.core.max_dim, sizes if len(sizes) > 1 else sizes[0]),
}


class _Either:
    """A function, or another one where an argument is a symbol, or is traced.

    Args:
        function: It.
        other: The other one.
        kinds: Whose instances are open besides symbols: what is traced, for functions of arrays.
    """

    def __init__(self, function: Any, other: Callable[..., Any], kinds: tuple[type, ...] = (jax.core.Tracer,)) -> None:
        self._function, self._other, self._kinds = function, other, kinds

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        is_open = any(_is_open(each, self._kinds) for each in (*args, *kwargs.values()))
        return (self._other if is_open else self._function)(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)


def _is_open(value: Any, kinds: tuple[type, ...]) -> bool:
    if isinstance(value, tuple | list):
        return any(_is_open(each, kinds) for each in value)
    return isinstance(value, kinds) or bool(jax.export.is_symbolic_dim(value))


def _product(sizes: Any, *args: Any, **kwargs: Any) -> Any:
    """A size again, of sizes."""
    are_sizes = isinstance(sizes, tuple | list) and not any(isinstance(each, jax.core.Tracer) for each in sizes)
    return math.prod(sizes) if are_sizes and not args and not kwargs else jnp.prod(sizes, *args, **kwargs)


def _extreme(name: str, array: Callable[..., Any]) -> Callable[..., Any]:
    """``np.minimum`` or ``np.maximum``: a size again, of two sizes."""

    def found(*args: Any, **kwargs: Any) -> Any:
        are_sizes = len(args) == 2 and not kwargs and all(map(_is_size, args))
        return _EXTREMES[name](*args) if are_sizes else array(*args, **kwargs)

    return found


def _is_size(value: Any) -> bool:
    return type(value) is int or bool(jax.export.is_symbolic_dim(value))


_OTHERS: dict[str, Callable[..., Any]] = {
    "prod": _product,
    "minimum": _extreme("min", jnp.minimum),
    "maximum": _extreme("max", jnp.maximum),
}


def length(value: Any) -> Any:
    """``len``: the number of elements along the first axis, which may be a symbol."""
    return value.shape[0] if isinstance(value, jax.core.Tracer) and value.ndim else len(value)


def _squeezed(a: Any, axis: Any = None) -> Any:
    """``jnp.squeeze``: axes that vary need two elements, for else it would not be known how many axes are left."""
    if axis is None and isinstance(a, jax.core.Tracer):
        axis = tuple(at for at, size in enumerate(a.shape) if (size == 1 if is_known(size) else not size >= 2))
        return jax.lax.squeeze(a, axis)
    return jnp.squeeze(a, axis)


def _scanned(f: Any, init: Any, xs: Any = None, length: Any = None, *args: Any, **kwargs: Any) -> Any:
    """``jax.lax.scan``, which takes a number for a length; where there is something to scan, that has the length."""
    leaves = jax.tree.leaves(xs)
    stated = jax.export.is_symbolic_dim(length) and any(leaf.shape[0] == length for leaf in leaves)
    return jax.lax.scan(f, init, xs, None if stated else length, *args, **kwargs)


def _searched(a: Any, v: Any, side: str = "left", sorter: Any = None, *, method: str = "scan") -> Any:
    """``jnp.searchsorted``, which takes as many steps as the logarithm of a number: how many come before, NaN last."""
    if not isinstance(a, jax.core.Tracer) or a.ndim != 1 or is_known(a.shape[0]) or side not in ("left", "right"):
        return jnp.searchsorted(a, v, side, sorter, method=method)
    v = jnp.asarray(v)
    ordered = (a if sorter is None else a[sorter]).reshape(-1, *[1] * v.ndim)
    before = ordered < v if side == "left" else ordered <= v
    last = jnp.isnan(v) & (~jnp.isnan(ordered) if side == "left" else True)
    return (before | last).sum(0, dtype=np.int32)


def squeezed(x: Any, *args: Any, **kwargs: Any) -> Any:
    """The method ``x.squeeze``."""
    return x.squeeze(*args, **kwargs) if not isinstance(x, jax.core.Tracer) else _squeezed(x, *args, **kwargs)


def whole(function: Callable[[Any], Any], value: Any) -> Any:
    """``int(value)``; a size is a whole number."""
    return value if jax.export.is_symbolic_dim(value) else function(value)


def quotient(function: Callable[[Any], Any], up: bool, left: Any, right: Any) -> Any:
    """``ceil(left / right)``, or ``floor``; of sizes, a size."""
    if (_is_size(left) and _is_size(right)) and not (type(left) is int and type(right) is int):
        return -(-left // right) if up else left // right
    return function(left / right)


def whole_quotient(function: Callable[[Any], Any], left: Any, right: Any) -> Any:
    """``int(left / right)``, of sizes a size where it is known that none is negative: ``int`` rounds towards zero."""
    if (type(right) is int and right > 0) and _is_never_negative(left):
        return left // right
    return whole(function, left / right)


def whole_product(function: Callable[[Any], Any], left: Any, right: Any) -> Any:
    """``int(left * right)``, of a size and a fraction such as 0.5 or 0.75, by which products are exact."""
    size, factor = (right, left) if isinstance(left, float) else (left, right)
    if isinstance(factor, float) and 0 <= factor < _MOST and _is_never_negative(size):
        above, below = factor.as_integer_ratio()
        if below <= _MOST:
            return size * above // below
    return whole(function, left * right)


_MOST = 1 << 10


def _is_never_negative(size: Any) -> bool:
    """Whether it is a symbol, or an expression of symbols, that JAX knows to be no less than 0."""
    try:
        return bool(jax.export.is_symbolic_dim(size) and size >= 0)
    except jax.errors.InconclusiveDimensionOperation:
        return False


def remainder(left: Any, right: Any) -> Any:
    """``left % right``; of sizes, so that JAX sees what divides ``left + -left % right``."""
    are_sizes = jax.export.is_symbolic_dim(left) and isinstance(right, int)
    return left - left // right * right if are_sizes else left % right
