"""Axes, counted from either end, and lengths along them."""

from __future__ import annotations

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
