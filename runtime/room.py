"""Room for results: what a kernel is about to make is held against the limits before any memory is taken.

Most results are as large as what they are made from. Kernels whose results may be larger (a shape that is an input, a
size that is an attribute, operands that broadcast) ask here first; so do the functions below, which make arrays.
"""

from __future__ import annotations

import contextvars
import math
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np

from entrepot.ir.errors import ResourceLimitError
from entrepot.ir.limits import Limits
from entrepot.ir.printable import size_text
from entrepot.runtime.memory import free_bytes

Array: TypeAlias = np.ndarray[Any, Any]

SMALL = 1 << 20
"""Bytes that are always granted: looking closer costs more than such an array."""

_LARGE = 1 << 26
"""Bytes from which on the machine is asked: that takes less time than filling them."""

_MOST = contextvars.ContextVar("bytes that one result may have", default=Limits().result_bytes)


def limit(nbytes: int) -> None:
    """Let no result in this context be larger than ``nbytes``."""
    _MOST.set(nbytes)


def run_within(nbytes: int, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function whose results, and what it makes on the way, may have this many bytes each."""
    context = contextvars.copy_context()
    context.run(limit, nbytes)
    return context.run(function, *arguments)


def claim(shape: Sequence[int], itemsize: int = 8) -> None:
    """Make sure that there is room for an array, or for what reads a view as if it were one.

    Raises:
        ResourceLimitError: It is larger than ``Limits.result_bytes``, or than the memory that is left.
    """
    nbytes = math.prod(shape) * itemsize
    if nbytes > SMALL:
        _look_closer(nbytes, shape)


def _look_closer(nbytes: int, shape: Sequence[int]) -> None:
    text = f"a result of shape {tuple(shape)} takes {size_text(nbytes)}"
    if nbytes > (most := _MOST.get()):
        hint = "raise Limits(result_bytes=...) if the model needs it"
        raise ResourceLimitError(f"{text}, more than the {size_text(most)} allowed", hint=hint)
    if nbytes > _LARGE and nbytes > (free := free_bytes()):
        raise ResourceLimitError(f"{text}, but only {size_text(free)} of memory are free", hint="feed smaller inputs")


def breathe() -> None:
    """Make sure that some memory is left, where many small results add up.

    Raises:
        ResourceLimitError: Hardly any is.
    """
    if free_bytes() < _LARGE:
        raise ResourceLimitError("hardly any memory is left", hint="feed smaller inputs")


def out_of_memory(error: MemoryError, node: str) -> ResourceLimitError:
    """What is raised instead where memory ran out all the same."""
    detail = str(error).partition(";")[0]
    return ResourceLimitError(f"memory ran out{f': {detail}' if detail else ''}", node=node or None)


def empty(shape: Sequence[int], dtype: Any) -> Array:
    """``numpy.empty``, where there is room."""
    claim(shape, np.dtype(dtype).itemsize)
    return np.empty(shape, dtype)


def zeros(shape: Sequence[int], dtype: Any) -> Array:
    """``numpy.zeros``, where there is room."""
    claim(shape, np.dtype(dtype).itemsize)
    return np.zeros(shape, dtype)


def full(shape: Sequence[int], value: Any, dtype: Any) -> Array:
    """``numpy.full``, where there is room."""
    claim(shape, np.dtype(dtype).itemsize)
    return np.full(shape, value, dtype)


_shape, _dtype = attrgetter("shape"), attrgetter("dtype")


def broadcasting(function: Callable[..., Any], leading: int = 0) -> Callable[..., Any]:
    """The function, for operands whose common shape may be larger than all of theirs.

    Args:
        function: The kernel.
        leading: How many of its arguments come before the operands: none, or the backend, which knows about arrays.
    """

    def roomy(*arguments: Any, **attributes: Any) -> Any:
        shape, dtype = (arguments[0].shape, arguments[0].dtype) if leading else (_shape, _dtype)
        operands = [operand for operand in arguments[leading:] if operand is not None]
        shapes = [tuple(shape(operand)) for operand in operands]
        if math.prod(map(math.prod, shapes)) > SMALL:  # the product of all sizes bounds the result's
            claim(np.broadcast_shapes(*shapes), max(dtype(operand).itemsize for operand in operands))
        return function(*arguments, **attributes)

    roomy.__wrapped__ = function  # type: ignore[attr-defined] # the text of a model names the kernel itself
    return roomy
