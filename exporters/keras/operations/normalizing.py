"""Normalisations by given and by computed statistics."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import typed
from entrepot.exporters.keras.reading.step import Step, rank_of, shape_of
from entrepot.exporters.keras.reading.table import operation


@operation("BatchNorm")
def batch_norm(step: Step, x: Any, mean: Any, variance: Any, offset: Any = None, scale: Any = None) -> ir.Value:
    """ONNX's operator, with the channels where it wants them."""
    return normalized(step, step.value(x, step.dtype), mean, variance, offset, scale)


def normalized(step: Step, value: ir.Value, mean: Any, variance: Any, offset: Any, scale: Any) -> ir.Value:
    """By given statistics of each member of an axis, in the type of the value."""
    kind, rank = value.dtype, rank_of(value)
    if not isinstance(step.operation.axis, int):
        raise step.refuse("statistics of several axes together")
    axis = int(step.operation.axis) % rank
    channels = shape_of(value)[axis]
    if channels is None:
        raise step.refuse("the number of channels has to be known")
    order = [0, axis, *(at for at in range(1, rank) if at != axis)] if axis else [1, 0, *range(2, rank)]
    rows = [
        step.value(np.full(channels, other, np.float32) if given is None else given, kind)
        for given, other in ((scale, 1), (offset, 0), (mean, 0), (variance, 1))
    ]
    moved = step.transposed(value, order) if rank > 1 else step.op("Unsqueeze", value, [0])
    result = step.op("BatchNormalization", moved, *rows, epsilon=float(step.operation.epsilon))
    typed(result, kind, shape_of(moved) if rank > 1 else [1, channels])
    return (
        step.transposed(result, [order.index(at) for at in range(rank)])
        if rank > 1
        else step.op("Squeeze", result, [0])
    )


@operation("LayerNorm")
def layer_norm(step: Step, x: Any, gamma: Any = None, beta: Any = None) -> ir.Value:
    """Over any axes, computed in float32 at least."""
    given, value = step.operation, step.value(x)
    epsilon = 1e-3 if given.epsilon is None else given.epsilon
    wide = step.build.cast(value, np.float32) if value.dtype.itemsize < 4 else value  # type: ignore[union-attr]
    rank = rank_of(value)
    axes = sorted(at % rank for at in ([given.axis] if isinstance(given.axis, int) else given.axis))
    weights = [None if w is None else _spread(step, step.value(w, wide.dtype), axes, rank) for w in (gamma, beta)]
    if given.rms_scaling:
        return step.build.cast(_by_variance(step, wide, axes, float(epsilon), weights[0]), step.dtype)
    trailing = axes == list(range(rank - len(axes), rank))
    if trailing and all(isinstance(size, int) for size in shape_of(value)[axes[0] :]):
        ones = np.ones([size for size in shape_of(value)[axes[0] :] if size is not None], wide.dtype.numpy())  # type: ignore[union-attr]
        plain = [None if w is None else step.value(w, wide.dtype) for w in (gamma, beta)]
        result = step.op(
            "LayerNormalization",
            wide,
            ones if plain[0] is None else plain[0],
            plain[1],
            axis=axes[0] - rank,
            epsilon=float(epsilon),
        )
        return step.build.cast(result, step.dtype)
    mean = step.op("ReduceMean", wide, axes)
    rest = step.op("Sub", wide, mean)
    spread = step.op("ReduceMean", step.op("Mul", rest, rest), axes)
    result = step.op("Div", rest, step.op("Sqrt", step.op("Add", spread, float(epsilon))))
    result = result if weights[0] is None else step.op("Mul", result, weights[0])
    return step.build.cast(result if weights[1] is None else step.op("Add", result, weights[1]), step.dtype)


def _spread(step: Step, weight: ir.Value, axes: list[int], rank: int) -> ir.Value:
    """A weight of the normalised axes with all axes."""
    if rank_of(weight) == rank or axes == [rank - 1]:
        return weight
    sizes = iter(shape_of(weight))
    return step.reshaped(weight, [next(sizes) if at in axes else 1 for at in range(rank)])


def _by_variance(step: Step, value: ir.Value, axes: list[int], epsilon: float, gamma: ir.Value | None) -> ir.Value:
    rest = step.op("Sub", value, step.op("ReduceMean", value, axes))
    spread = step.op("ReduceMean", step.op("Mul", rest, rest), axes)
    result = step.op("Div", value, step.op("Sqrt", step.op("Add", spread, epsilon)))
    return result if gamma is None else step.op("Mul", result, gamma)


@operation("RMSNorm")
def rms_norm(step: Step, x: Any, scale: Any = None) -> ir.Value:
    """By the mean square, computed in float32 at least."""
    given, value = step.operation, step.value(x)
    epsilon = 1e-7 if given.epsilon is None else float(given.epsilon)
    wide = step.build.cast(value, np.float32) if value.dtype.itemsize < 4 else value  # type: ignore[union-attr]
    rank = rank_of(value)
    axes = sorted(at % rank for at in ([given.axis] if isinstance(given.axis, int) else given.axis))
    square = step.op("ReduceMean", step.op("Mul", wide, wide), axes)
    result = step.op("Div", wide, step.op("Sqrt", step.op("Add", square, epsilon)))
    if scale is not None:
        result = step.op("Mul", result, _spread(step, step.value(scale, wide.dtype), axes, rank))
    return step.build.cast(result, step.dtype)
