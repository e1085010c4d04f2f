"""``x[...]``, as far as ONNX has words for it: slices, new axes, numbers, and lists of positions along one axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.sklearn.array import Array
from entrepot.exporters.sklearn.selection import Chosen
from entrepot.ir.errors import ConversionError

_END = np.iinfo(np.int64).max


def indexed(x: Array, key: Any) -> Any:
    """``x[key]``.

    Raises:
        ConversionError: It is a kind of index that a graph has no words for.
    """
    if isinstance(key, Array) and key.dtype.kind == "b" and key.ndim == x.ndim:
        return Chosen(x, key)
    axis = 0
    for item in _parts(x, key):
        if item is None:
            x, axis = x.expand(axis), axis + 1
        elif isinstance(item, slice):
            x, axis = _sliced(x, axis, item), axis + 1
        elif isinstance(item, int | np.integer):
            x = x.take(np.int64(item), axis)
        else:
            x, axis = x.take(_positions(item), axis), axis + 1
    return x


def _parts(x: Array, key: Any) -> list[Any]:
    """One item per axis, with the ellipsis spelled out."""
    items = list(key) if isinstance(key, tuple) else [key]
    used = sum(item is not None and item is not Ellipsis for item in items)
    at = next((at for at, item in enumerate(items) if item is Ellipsis), None)
    if at is not None:
        items[at : at + 1] = [slice(None)] * (x.ndim - used)
    return items


def _positions(item: Any) -> Any:
    if isinstance(item, Array):
        if item.dtype.kind not in "iu":
            raise ConversionError(
                "a mask that depends on values cannot be an index", hint="np.where keeps the shape as it is"
            )
        return item
    array = np.asarray(item)
    return np.flatnonzero(array) if array.dtype == bool else array


def _sliced(x: Array, axis: int, item: slice) -> Array:
    if item == slice(None):
        return x
    step = 1 if item.step is None else int(item.step)
    start = (0 if step > 0 else _END) if item.start is None else int(item.start)
    stop = (_END if step > 0 else -_END) if item.stop is None else int(item.stop)
    size = x.shape[axis]
    left = None if size is None else len(range(*item.indices(size)))
    shape = (*x.shape[:axis], left, *x.shape[axis + 1 :])
    return x.op("Slice", [start], [stop], [axis], [step], shape=shape)
