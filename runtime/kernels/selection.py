"""Places and values that depend on the data: largest, non-zero, unique."""

from __future__ import annotations

from entrepot.ir.errors import InputError
from entrepot.runtime.kernels.backend import Array, Backend, HostArray
from entrepot.runtime.kernels.table import shared


@shared("TopK", 24)
def top_k(
    xp: Backend, X: Array, K: HostArray, *, axis: int = -1, largest: int = 1, sorted: int = 1
) -> tuple[Array, Array]:
    """The K largest or smallest along ``axis``, in order, and their places; of equal ones the first."""
    count = int(K.item())
    size = xp.shape(X)[axis]
    if not 0 <= count <= size:
        raise InputError(f"TopK: K is {count}, and axis {axis} has {size} entries")
    order = xp.argsort(X, axis, descending=bool(largest))
    places = xp.split(order, (count, size - count), axis)[0]
    return xp.take_along_axis(X, places, axis), places


@shared("NonZero", 13)
def non_zero(xp: Backend, X: Array) -> Array:
    """The coordinates of the elements that are not zero, one column each."""
    if not xp.shape(X):  # no coordinates, and as many columns as there are such elements
        return xp.stack(xp.nonzero(xp.reshape(X, (1,))), 0)[:0]
    return xp.stack(xp.nonzero(X), 0)
