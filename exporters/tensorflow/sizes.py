"""Shapes, axes and sizes in translations: constants where TensorFlow knows them, computed where it does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import Builder, typed
from entrepot.exporters.tensorflow.node import Node


def rank_of(node: Node, at: int = 0) -> int:
    """How many axes an input has."""
    shape = node.shape(at)
    if shape is None:
        node.refuse(f"the rank of input {at} is not known")
    return len(shape)


def known(node: Node, at: int) -> np.ndarray[Any, Any]:
    """The value of an input that has to be known."""
    value = node.constant(at)
    if value is None:
        node.refuse(f"input {at} has to be known when the graph is written")
    return np.asarray(value)


def integers(node: Node, at: int) -> list[int]:
    """The integers of an input that has to be known."""
    return [int(each) for each in np.ravel(known(node, at))]


def axes_of(node: Node, at: int, rank: int) -> list[int]:
    """Axes, counted from the front, which an input has to state."""
    return [axis % rank if rank else 0 for axis in integers(node, at)]


def int64(build: Builder, value: ir.Value) -> ir.Value:
    """The value as int64."""
    return build.cast(value, np.int64)


def vector(build: Builder, value: ir.Value) -> ir.Value:
    """An int64 vector of one element of a scalar, or of the elements of a vector."""
    result: ir.Value = build.op("Reshape", int64(build, value), [-1])
    return result


def scalar(build: Builder, value: ir.Value) -> ir.Value:
    """A scalar of a vector of one element."""
    result: ir.Value = build.op("Reshape", value, build.constant(np.zeros(0, np.int64)))
    return result


def joined(build: Builder, *parts: Any) -> ir.Value:
    """A shape from vectors and lists of integers: a constant where all of them are known."""
    values = [each if isinstance(each, ir.Value) else build.constant(np.array(each, np.int64)) for each in parts]
    values = [each for each in values if each.const_value is None or each.const_value.size]
    if not values:
        return build.constant(np.zeros(0, np.int64))
    if all(each.const_value is not None for each in values):
        return build.constant(np.concatenate([each.const_value.numpy() for each in values]))  # type: ignore[union-attr]
    result: ir.Value = values[0] if len(values) == 1 else build.op("Concat", *values, axis=0)
    return result


def dims(build: Builder, value: ir.Value, axes: Sequence[int]) -> ir.Value:
    """The sizes of some axes, ``int64[n]``."""
    return joined(build, *(build.shape(value, axis, axis + 1) for axis in axes))


def reshaped(build: Builder, value: ir.Value, *parts: Any) -> ir.Value:
    """The elements of a value in another shape, put together from vectors and lists; -1 is what is left, 0 is none."""
    shape = joined(build, *parts)
    result: ir.Value = build.op("Reshape", value, shape, allowzero=1)
    return result


def flattened(build: Builder, value: ir.Value) -> ir.Value:
    """All elements in a row."""
    result: ir.Value = build.op("Reshape", value, [-1])
    return result


def transposed(build: Builder, value: ir.Value, order: Sequence[int]) -> ir.Value:
    """The axes in another order, with the shape that is known of it."""
    order = [int(axis) for axis in order]
    if order == list(range(len(order))):
        return value
    result: ir.Value = build.op("Transpose", value, perm=order)
    if value.shape is not None:
        typed(result, value.dtype, [_dim(value.shape[axis]) for axis in order])
    return result


def arange(build: Builder, count: ir.Value) -> ir.Value:
    """0, 1, ... as int64, as many as a scalar says."""
    if count.const_value is not None:
        return build.constant(np.arange(int(count.const_value.numpy())))
    result: ir.Value = build.op("Range", 0, count, 1)
    return result


def along(build: Builder, count: ir.Value, axis: int, rank: int) -> ir.Value:
    """0, 1, ... along an axis of ``rank``, to be broadcast."""
    shape = [1] * rank
    shape[axis] = -1
    result: ir.Value = build.op("Reshape", arange(build, count), shape)
    return result


def part(build: Builder, value: ir.Value, start: Any, end: Any, axis: int, step: int = 1) -> ir.Value:
    """A slice along one axis."""
    bounds = [each if isinstance(each, ir.Value) else [each] for each in (start, end)]
    result: ir.Value = build.op("Slice", value, *bounds, [axis], [step])
    return result


def _dim(dim: Any) -> Any:
    return dim if isinstance(dim, int) else getattr(dim, "value", None)


END = 2**62
"""Further than any axis goes."""
