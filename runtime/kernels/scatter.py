"""Elements placed by index into a copy. Negative indices count from the end; of two writes the last one stays."""

from __future__ import annotations

import numpy as np

from entrepot.ir.errors import InputError
from entrepot.runtime.kernels.axes import counted, is_shape
from entrepot.runtime.kernels.backend import Array, Backend
from entrepot.runtime.kernels.gather import check_reach, coordinates
from entrepot.runtime.kernels.table import shared

_INT64 = np.dtype(np.int64)
_REDUCTIONS = ("none", "add", "mul", "max", "min")


def _check(reduction: str) -> None:
    if reduction not in _REDUCTIONS:
        raise InputError(f"reduction is one of {', '.join(_REDUCTIONS)}, not {reduction!r}")


def _check_updates(xp: Backend, updates: Array, wanted: tuple[int, ...]) -> None:
    if tuple(xp.shape(updates)) != tuple(wanted):
        raise InputError(f"updates of shape {tuple(xp.shape(updates))} where the indices ask for {tuple(wanted)}")


@shared("ScatterElements", 18)
def scatter_elements(
    xp: Backend, data: Array, indices: Array, updates: Array, *, axis: int = 0, reduction: str = "none"
) -> Array:
    """Each update goes to its own place, with its coordinate along ``axis`` replaced by its index."""
    _check(reduction)
    reach = xp.shape(indices)
    axis = counted(axis, len(xp.shape(data)))
    check_reach(xp.shape(data), reach, axis)
    _check_updates(xp, updates, reach)
    places = [
        indices
        if n == axis
        else xp.reshape(xp.arange(0, size, 1, _INT64), [-1 if m == n else 1 for m in range(len(reach))])
        for n, size in enumerate(reach)
    ]
    return xp.scatter(data, places, updates, reduction)


@shared("ScatterND", 18)
def scatter_nd(xp: Backend, data: Array, indices: Array, updates: Array, *, reduction: str = "none") -> Array:
    """Each update goes to the slice or element at the coordinates along the last axis of ``indices``."""
    _check(reduction)
    places = coordinates(xp, xp.shape(data), indices)
    _check_updates(xp, updates, (*xp.shape(indices)[:-1], *xp.shape(data)[len(places) :]))
    return xp.scatter(data, places, updates, reduction)


@shared("TensorScatter", 24)
def tensor_scatter(
    xp: Backend,
    past_cache: Array,
    update: Array,
    write_indices: Array | None = None,
    *,
    axis: int = -2,
    mode: str = "linear",
) -> Array:
    """Write ``update`` into each batch entry of the cache, from its own position along ``axis`` on."""
    if mode not in ("linear", "circular"):
        raise InputError(f"TensorScatter takes mode linear or circular, not {mode!r}")
    shape, reach = xp.shape(past_cache), xp.shape(update)
    axis = counted(axis, len(shape))
    starts = (shape[0],) if write_indices is None else tuple(xp.shape(write_indices))
    if not is_shape(reach, (*shape[:axis], reach[axis], *shape[axis + 1 :])) or not is_shape(starts, (shape[0],)):
        raise InputError(f"TensorScatter: an update of shape {tuple(reach)} at {starts} places of a cache of {shape}")

    def steps(along: int) -> Array:
        return xp.reshape(xp.arange(0, reach[along], 1, _INT64), [-1 if n == along else 1 for n in range(len(reach))])

    places = [steps(along) for along in range(len(reach))]
    if write_indices is not None:
        start = xp.astype(write_indices, _INT64)
        places[axis] = places[axis] + xp.reshape(start, [-1] + [1] * (len(reach) - 1))
    end = xp.scalar(shape[axis], like=places[axis])
    if mode == "circular":
        places[axis] = places[axis] % end
    else:  # a place before the beginning would count from the end
        places[axis] = xp.where(places[axis] < xp.scalar(0, like=end), end, places[axis])
    return xp.scatter(past_cache, places, update)
