"""Parts of tensors: by keys, by diagonals, and differences of neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.keras.reading.step import Step, rank_of, shape_of
from entrepot.exporters.keras.reading.table import operation


@operation("GetItem")
def get_item(step: Step, x: Any, key: Any) -> ir.Value:
    """Numbers, slices, new axes, an ellipsis."""
    value = step.value(x)
    keys = list(key) if isinstance(key, tuple | list) else [key]
    if any(isinstance(each, ir.Value) for each in keys):
        return _picked(step, value, keys)
    known = sum(each is not None and each is not Ellipsis for each in keys)
    at = next((i for i, each in enumerate(keys) if each is Ellipsis), len(keys))
    fill = [slice(None)] * (rank_of(value) - known)
    keys = [*keys[:at], *fill, *keys[at + 1 :]]
    slices, dropped, added = _plan(keys)
    if slices:
        axes, starts, ends, steps = (list(part) for part in zip(*slices, strict=True))
        value = step.op("Slice", value, starts, ends, axes, steps)
    value = step.op("Squeeze", value, dropped) if dropped else value
    return step.op("Unsqueeze", value, added) if added else step.op("Identity", value)


def _plan(keys: list[Any]) -> tuple[list[tuple[int, int, int, int]], list[int], list[int]]:
    """Slices by axis, axes that go, axes that come."""
    most = np.iinfo(np.int64).max
    slices, dropped, added = [], [], []
    axis = place = 0
    for key in keys:
        if key is None:
            added.append(place)
            place += 1
            continue
        if isinstance(key, slice):
            stride = 1 if key.step is None else int(key.step)
            start = (0 if stride > 0 else -1) if key.start is None else int(key.start)
            end = (most if stride > 0 else -most) if key.stop is None else int(key.stop)
            if (start, end, stride) != (0, most, 1):
                slices.append((axis, start, end, stride))
            place += 1
        else:
            slices.append((axis, int(key), most if int(key) == -1 else int(key) + 1, 1))
            dropped.append(axis)
        axis += 1
    return slices, dropped, added


def _picked(step: Step, value: ir.Value, keys: list[Any]) -> ir.Value:
    if len(keys) != 1:
        raise step.refuse("an index that is computed beside others")
    return step.op("Gather", value, step.value(keys[0], np.int64), axis=0)


@operation("Diff")
def diff(step: Step, a: Any) -> ir.Value:
    """Each element without the one before."""
    value, axis = step.value(a), step.operation.axis
    most = np.iinfo(np.int64).max
    for _ in range(step.operation.n):
        value = step.op("Sub", step.op("Slice", value, [1], [most], [axis]), step.op("Slice", value, [0], [-1], [axis]))
    return value


@operation("Tril", "Triu")
def triangle(step: Step, x: Any) -> ir.Value:
    """What is below or above a diagonal."""
    value = step.value(x)
    kind = value.dtype
    narrow = step.build.cast(value, np.int32) if kind == ir.DataType.BOOL else value
    upper = int(type(step.operation).__name__ == "Triu")
    result = step.op("Trilu", narrow, step.build.constant(int(step.operation.k), "int64"), upper=upper)
    return step.build.cast(result, kind)


@operation("Diagonal", "Trace")
def diagonal(step: Step, x: Any) -> ir.Value:
    """The elements of a diagonal, whose axes have known sizes; their sum."""
    value, given = step.value(x), step.operation
    rank = rank_of(value)
    axes = given.axis1 % rank, given.axis2 % rank
    value = step.transposed(value, [*(at for at in range(rank) if at not in axes), *axes])
    rows, columns = shape_of(value)[-2:]
    if rows is None or columns is None:
        raise step.refuse("a diagonal of a matrix whose size varies")
    places = [r * columns + r + given.offset for r in range(rows) if 0 <= r + given.offset < columns]
    flat = step.reshaped(value, [*(0 for _ in range(rank - 2)), -1])
    found = step.op("Gather", flat, np.array(places, np.int64), axis=-1)
    if type(given).__name__ == "Diagonal":
        return found
    return step.op("ReduceSum", step.build.cast(found, step.dtype), [-1], keepdims=0)
