"""Sequences: Python lists of arrays, never changed in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.ir.errors import InputError
from entrepot.runtime.kernels.axes import is_shape
from entrepot.runtime.kernels.backend import Array, Backend, HostArray
from entrepot.runtime.kernels.table import shared

_INT64 = np.dtype(np.int64)


@shared("SequenceEmpty", 11)
def sequence_empty(xp: Backend, *, dtype: int = 1) -> list[Array]:
    """A sequence without elements; the element type is known to the graph, not to the list."""
    return []


@shared("SequenceConstruct", 11)
def sequence_construct(xp: Backend, *inputs: Array) -> list[Array]:
    """The inputs as a sequence."""
    return list(inputs)


@shared("SequenceAt", 11)
def sequence_at(xp: Backend, input_sequence: list[Array], position: HostArray) -> Array:
    """One element; negative positions count from the end."""
    return input_sequence[_position(position, len(input_sequence))]


@shared("SequenceInsert", 11)
def sequence_insert(
    xp: Backend, input_sequence: list[Array], tensor: Array, position: HostArray | None = None
) -> list[Array]:
    """A new sequence with ``tensor`` before ``position``, or at the end."""
    size = len(input_sequence)
    at = size if position is None else _position(position, size, inclusive=True)
    return [*input_sequence[:at], tensor, *input_sequence[at:]]


@shared("SequenceErase", 11)
def sequence_erase(xp: Backend, input_sequence: list[Array], position: HostArray | None = None) -> list[Array]:
    """A new sequence without the element at ``position``, the last one by default."""
    size = len(input_sequence)
    at = _position(np.array(-1) if position is None else position, size)
    return [*input_sequence[:at], *input_sequence[at + 1 :]]


@shared("SequenceLength", 11)
def sequence_length(xp: Backend, input_sequence: list[Array]) -> Array:
    """The number of elements, as a 0-d int64."""
    return xp.asarray(len(input_sequence), _INT64)


@shared("SplitToSequence", 24)
def split_to_sequence(
    xp: Backend,
    input: Array,
    split: HostArray | None = None,
    *,
    axis: int = 0,
    keepdims: int = 1,
) -> list[Array]:
    """Cut ``input`` along ``axis`` into parts of one size, of given sizes, or into single slices."""
    size = xp.shape(input)[axis]
    if split is None:
        parts = xp.split(input, [1] * size, axis)
        return list(parts) if keepdims else [xp.squeeze(part, axis) for part in parts]
    return list(xp.split(input, _sizes(split, size), axis))


@shared("ConcatFromSequence", 11)
def concat_from_sequence(xp: Backend, input_sequence: list[Array], *, axis: int, new_axis: int = 0) -> Array:
    """The elements joined along ``axis``, a new one when ``new_axis`` is set."""
    return xp.stack(input_sequence, axis) if new_axis else xp.concat(input_sequence, axis)


def _sizes(split: Any, size: int) -> list[int]:
    if split.ndim:
        parts = [int(part) for part in split]
        if not is_shape((sum(parts),), (size,)) or min(parts, default=0) < 0:
            raise InputError(f"SplitToSequence: parts of {parts} do not make up {size} entries")
        return parts
    part = int(split)
    if part <= 0:
        raise InputError(f"SplitToSequence: split is {part}, expected a positive size")
    rest = size % part
    return [part] * (size // part) + ([rest] if rest else [])


def _position(position: HostArray, size: int, *, inclusive: bool = False) -> int:
    at = int(position.reshape(()))
    if not -size <= at < size + inclusive:
        raise InputError(f"position {at} is outside a sequence of {size} elements")
    return at + size if at < 0 else at
