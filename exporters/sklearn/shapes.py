"""Sizes of arrays of which some are not known."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeAlias

Shape: TypeAlias = "Sequence[int | None]"


def broadcast(shapes: Sequence[Shape]) -> tuple[int | None, ...]:
    """The shape of an elementwise result."""
    rank = max(map(len, shapes), default=0)
    padded = [(*[1] * (rank - len(shape)), *shape) for shape in shapes]
    return tuple(_together(sizes) for sizes in zip(*padded, strict=True))


def _together(sizes: Sequence[int | None]) -> int | None:
    """A known size other than 1 decides; else whatever is not known, else 1."""
    known = [size for size in sizes if size is not None and size != 1]
    if known:
        return known[0]
    return None if None in sizes else 1


def reduced(shape: Shape, axes: Collection[int], keepdims: bool) -> tuple[int | None, ...]:
    """The shape once some axes are gone, or of size 1."""
    kept = ((at, 1 if at in axes else size) for at, size in enumerate(shape))
    return tuple(size for at, size in kept if keepdims or at not in axes)


def product(left: Shape, right: Shape) -> tuple[int | None, ...]:
    """The shape of a matrix product."""
    if len(left) == 1 and len(right) == 1:
        return ()
    if len(right) == 1:
        return tuple(left[:-1])
    if len(left) == 1:
        return (*right[:-2], right[-1])
    return (*broadcast([left[:-2], right[:-2]]), left[-2], right[-1])
