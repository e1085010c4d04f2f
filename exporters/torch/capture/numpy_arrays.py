"""NumPy in ``forward``: arrays of sizes that vary, or of tensors, are torch's arrays of the same meaning in a capture.

``np.triu(np.ones((length, length)))`` would fix the length, since NumPy asks a size for its number. torch has NumPy's
functions on tensors for its own compiler; here they are called for what NumPy itself cannot take.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from entrepot.exporters.torch.upstream import numpy_in_torch

_Array = numpy_in_torch.ndarray
_VARYING = (torch.SymInt, torch.SymFloat, _Array)
_PLAIN = (torch.Tensor, torch.nn.Parameter)


class _Function:
    """A function of NumPy, and torch's for arguments that NumPy cannot take in a capture; equal to the first."""

    def __init__(self, plain: Callable[..., Any], ours: Callable[..., Any]) -> None:
        self._plain, self._ours = plain, ours

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not any(map(_varies, (*args, *kwargs.values()))):
            return self._plain(*args, **kwargs)
        return self._ours(*map(_as_ours, args), **{name: _as_ours(value) for name, value in kwargs.items()})

    def outer(self, one: Any, other: Any) -> Any:
        """The function of every element of an array with every element of another, where it has that."""
        if not _varies([one, other]):
            return self._plain.outer(one, other)  # type: ignore[attr-defined]
        one, other = numpy_in_torch.asarray(one), numpy_in_torch.asarray(other)
        return self._ours(one.reshape((*one.shape, *[1] * other.ndim)), other)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)

    def __eq__(self, other: object) -> bool:
        return other is self._plain or other is self

    def __hash__(self) -> int:
        return hash(self._plain)


class _Grid:
    """``np.mgrid[:rows, :columns]``, whose bounds may vary."""

    def __init__(self, plain: Any) -> None:
        self._plain = plain

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        bounds = [(part.start or 0, part.stop, part.step or 1) for part in parts if isinstance(part, slice)]
        if not _varies(bounds):
            return self._plain[key]
        axes = [numpy_in_torch.arange(*limits) for limits in bounds]
        return (
            numpy_in_torch.stack(numpy_in_torch.meshgrid(*axes, indexing="ij")) if isinstance(key, tuple) else axes[0]
        )


class _AsTensors(TorchFunctionMode):
    """Inside, torch's functions take these arrays, and ``tensor.numpy()`` makes one."""

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        """Make the call, or another one."""
        if func is torch.Tensor.numpy and _varies(args[0]):
            return _Array(args[0].detach())
        return func(*map(_as_tensor, args), **(kwargs or {}))


@contextlib.contextmanager
def numpy_of_sizes() -> Iterator[None]:
    """Inside, NumPy's functions take sizes that vary, tensors without values, and the arrays that come of them."""
    element_types, operands = numpy_in_torch._dtypes, numpy_in_torch._dtypes_impl  # noqa: SLF001 - have no other names
    changes: list[tuple[Any, Mapping[str, Any]]] = [
        (np, {**_functions(), "mgrid": _Grid(np.mgrid)}),
        (torch, {"from_numpy": functools.partial(_from_numpy, torch.from_numpy)}),
        (element_types, {"dtype": functools.partial(_element_type, element_types.dtype)}),
        (operands, {"nep50_to_tensors": functools.partial(_operands, operands.nep50_to_tensors)}),
    ]
    before = [{name: vars(module)[name] for name in changed} for module, changed in changes]
    _Array.__array_ufunc__ = None  # NumPy's own arrays leave sums with these to them
    try:
        for module, changed in changes:
            vars(module).update(changed)
        with _AsTensors():
            yield
    finally:
        del _Array.__array_ufunc__
        for (module, _), plain in zip(changes, before, strict=True):
            vars(module).update(plain)


def following(function: Any) -> Any:
    """A function of NumPy's that was imported by its name, as those that are found in NumPy are inside."""
    name = getattr(function, "__name__", "")
    known = _functions().get(name) if isinstance(name, str) else None
    return known if known is not None and known == function else function


def element(array: np.ndarray[Any, Any], index: Any) -> Any:
    """``array[index]``, whose indices or bounds may vary."""
    parts = index if isinstance(index, tuple) else (index,)
    bounds = [[each.start, each.stop, each.step] if isinstance(each, slice) else each for each in parts]
    return numpy_in_torch.asarray(array)[index] if _varies(bounds) else array[index]


@functools.cache
def _functions() -> Mapping[str, _Function]:
    """NumPy's functions that torch has, too."""
    pairs = {name: (vars(np)[name], ours) for name, ours in vars(numpy_in_torch).items() if name in vars(np)}
    return {
        name: _Function(*pair)
        for name, pair in pairs.items()
        if all(callable(each) and not isinstance(each, type) for each in pair) and not name.startswith("_")
    }


def _from_numpy(plain: Callable[[Any], torch.Tensor], array: Any) -> torch.Tensor:
    return array.tensor if isinstance(array, _Array) else plain(array)


def _element_type(plain: Callable[[Any], Any], kind: Any) -> Any:
    return plain(_as_ours(kind))


def _varies(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_varies, value))
    return isinstance(value, _VARYING) or (isinstance(value, torch.Tensor) and type(value) not in _PLAIN)


def _operands(plain: Callable[..., Any], one: Any, other: Any, weak: bool, name: str) -> Any:
    """Those of an operation: torch (2.13) takes NumPy's own doubles for numbers of Python, and does not know them."""
    one, other = (torch.as_tensor(each) if isinstance(each, np.generic) else each for each in (one, other))
    return plain(one, other, weak and not (isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)), name)


def _as_ours(value: Any) -> Any:
    """An argument for torch's functions, which know NumPy's element types by their names alone."""
    if type(value) in (list, tuple):
        return type(value)(map(_as_ours, value))
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return np.dtype(value).name
    return value


def _as_tensor(value: Any) -> Any:
    if type(value) in (list, tuple):
        return type(value)(map(_as_tensor, value))
    if isinstance(value, slice):
        return slice(*map(_as_bound, (value.start, value.stop, value.step)))
    return value.tensor if isinstance(value, _Array) else value


def _as_bound(value: Any) -> Any:
    """A bound of a slice, which torch takes as a number of Python only."""
    return value.tensor.item() if isinstance(value, _Array) else value
