"""Axes, counted from either end, and lengths along them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from entrepot.ir.errors import InputError
from entrepot.runtime.kernels.backend import Array, Backend, HostArray


def counted(axis: int, rank: int) -> int:
    """The axis counted from the front.

    Raises:
        InputError: An array of this rank does not have it.
    """
    if not -rank <= axis < rank:
        raise InputError(f"axis {axis} is out of range for an array of rank {rank}")
    return axis % rank


def is_shape(given: Sequence[Any], wanted: Sequence[Any]) -> bool:
    """Whether two shapes agree, as far as they are numbers: the sizes of a tracer are for the operator to refuse."""
    if len(given) != len(wanted):
        return False
    return all(type(a) is not int or type(b) is not int or a == b for a, b in zip(given, wanted, strict=True))


def lengths_within(xp: Backend, lengths: HostArray, time: int, batch: int) -> Array:
    """The lengths of sequences, once it is clear that there is one per sequence, and none reaches beyond the data.

    Raises:
        InputError: There is not, or one does.
    """
    if lengths.shape != (batch,):
        raise InputError(f"lengths of shape {lengths.shape} do not fit a batch of {batch}")
    if lengths.min(initial=0) < 0 or lengths.max(initial=0) > time:
        raise InputError(f"sequence lengths {lengths.tolist()[:8]} do not fit data of {time} steps")
    return xp.asarray(lengths)
