"""Axes, counted from either end, and lengths along them."""

from __future__ import annotations

from entrepot.ir.errors import InputError
from entrepot.runtime.kernels.backend import Array, Backend


def counted(axis: int, rank: int) -> int:
    """The axis counted from the front.

    Raises:
        InputError: An array of this rank does not have it.
    """
    if not -rank <= axis < rank:
        raise InputError(f"axis {axis} is out of range for an array of rank {rank}")
    return axis % rank


def check_lengths(xp: Backend, lengths: Array, time: int, batch: int) -> None:
    """Refuse lengths of sequences that are not one per sequence, or reach beyond the data.

    Raises:
        InputError: They are, or do.
    """
    given = xp.to_numpy(lengths)
    if given.shape != (batch,):
        raise InputError(f"lengths of shape {given.shape} do not fit a batch of {batch}")
    if given.min(initial=0) < 0 or given.max(initial=0) > time:
        raise InputError(f"sequence lengths {given.tolist()[:8]} do not fit data of {time} steps")
