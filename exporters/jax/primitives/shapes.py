"""What rearranges elements and computes none."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.jax.dims import is_known
from entrepot.exporters.jax.step import Step, kind_of
from entrepot.exporters.jax.table import rule

_LAST = 2**62


@rule("broadcast_in_dim", "broadcast_to")
def broadcast_in_dim(step: Step, x: ir.Value, *_sizes: ir.Value) -> ir.Value:
    """Axes of size 1 between those that there are, then repeated."""
    shape, old = step.outs[0].shape, step.ins[0].shape
    places = step.params.get("broadcast_dimensions", tuple(range(len(shape) - len(old), len(shape))))
    missing = [axis for axis in range(len(shape)) if axis not in places]
    between = step.op("Unsqueeze", x, missing) if missing and old else x
    present = [1] * len(shape)
    for place, size in zip(places, old, strict=True):
        present[place] = size
    if present == list(shape):
        return between if old or not shape else step.op("Reshape", x, [1] * len(shape))
    return step.expanded(between, shape)


@rule("reshape")
def reshape(step: Step, x: ir.Value, *_sizes: ir.Value) -> ir.Value:
    """Reshape; axes of size 1 that come or go are named."""
    old, new = tuple(step.ins[0].shape), tuple(step.outs[0].shape)
    order = step.params.get("dimensions")
    if order is not None:
        x, old = step.transposed(x, order), tuple(old[axis] for axis in order)
    if old == new:
        return x
    if all(is_known(dim) for dim in new):
        return step.op("Reshape", x, [int(dim) for dim in new], allowzero=1 if 0 in new else None)
    if (added := _ones(old, new)) is not None:
        return step.op("Unsqueeze", x, added)
    if (removed := _ones(new, old)) is not None:
        return step.op("Squeeze", x, removed)
    return step.shaped(x, new)


def _ones(short: tuple[Any, ...], long: tuple[Any, ...]) -> list[int] | None:
    """Which axes of size 1 the longer shape has besides those of the shorter, if that is all."""
    added, at = [], 0
    for axis, size in enumerate(long):
        if at < len(short) and size is not None and _same(short[at], size):
            at += 1
        elif _same(size, 1):
            added.append(axis)
        else:
            return None
    return added if at == len(short) and added else None


def _same(one: Any, other: Any) -> bool:
    return is_known(one) == is_known(other) and str(one) == str(other)


@rule("squeeze")
def squeeze(step: Step, x: ir.Value) -> ir.Value:
    """Squeeze."""
    return step.op("Squeeze", x, list(step.params["dimensions"])) if step.params["dimensions"] else x


@rule("transpose")
def transpose(step: Step, x: ir.Value) -> ir.Value:
    """Transpose."""
    return step.transposed(x, step.params["permutation"])


@rule("concatenate")
def concatenate(step: Step, *parts: ir.Value) -> ir.Value:
    """Concat."""
    return step.op("Concat", *parts, axis=step.params["dimension"]) if len(parts) > 1 else parts[0]


@rule("stack")
def stack(step: Step, *parts: ir.Value) -> ir.Value:
    """Each with one axis more, then Concat."""
    axis = step.params["axis"] if "axis" in step.params else step.params["dimension"]
    return step.op("Concat", *(step.op("Unsqueeze", part, [axis]) for part in parts), axis=axis)


@rule("unstack")
def unstack(step: Step, x: ir.Value) -> list[ir.Value]:
    """One result for each place of an axis."""
    axis = step.params["axis"] if "axis" in step.params else step.params["dimension"]
    return [step.op("Gather", x, np.array(at, np.int64), axis=axis) for at in range(len(step.outs))]


@rule("split")
def split(step: Step, x: ir.Value) -> list[ir.Value]:
    """Split by sizes."""
    sizes, axis = step.params["sizes"], step.params["axis"]
    if len(sizes) == 1:
        return [x]
    return list(step.op("Split", x, step.sizes.vector(sizes), outputs=len(sizes), axis=axis))


@rule("tile")
def tile(step: Step, x: ir.Value) -> ir.Value:
    """Tile."""
    return step.op("Tile", x, step.sizes.vector(step.params["reps"]))


@rule("rev")
def rev(step: Step, x: ir.Value) -> ir.Value:
    """A slice backwards."""
    return backwards(step, x, step.params["dimensions"])


def backwards(step: Step, x: ir.Value, axes: Any) -> ir.Value:
    """Some axes the other way round."""
    axes = [int(axis) for axis in axes]
    count = len(axes)
    return step.op("Slice", x, [-1] * count, [-_LAST] * count, axes, [-1] * count) if axes else x


@rule("slice")
def slice_(step: Step, x: ir.Value) -> ir.Value:
    """Slice, of the axes of which something is left out."""
    shape = step.ins[0].shape
    starts, ends = step.params["start_indices"], step.params["limit_indices"]
    steps = step.params["strides"] or (1,) * len(shape)
    cut = [
        axis for axis, size in enumerate(shape)
        if not (_same(starts[axis], 0) and _same(ends[axis], size) and _same(steps[axis], 1))
    ]  # fmt: skip
    if not cut:
        return x
    bounds = [step.sizes.vector([each[axis] for axis in cut]) for each in (starts, ends)]
    return step.op("Slice", x, *bounds, cut, step.sizes.vector([steps[axis] for axis in cut]))


@rule("iota")
def iota(step: Step) -> ir.Value:
    """Range along one axis, repeated along the others."""
    shape, axis = step.params["shape"], step.params["dimension"]
    count = step.outs[0].shape[axis]
    if is_known(count):
        run = step.build.constant(np.arange(count).astype(step.dtype))
    else:
        run = step.build.cast(along(step, count), kind_of(step.dtype))
    if len(shape) == 1:
        return run
    lined = step.op("Unsqueeze", run, [at for at in range(len(shape)) if at != axis])
    return step.expanded(lined, step.outs[0].shape)


def along(step: Step, count: Any) -> ir.Value:
    """0, 1, … as int64."""
    if is_known(count):
        return step.build.constant(np.arange(count, dtype=np.int64))
    zero, one = (step.build.constant(np.array(each, np.int64)) for each in (0, 1))
    result: ir.Value = step.op("Range", zero, step.sizes.value(count), one)
    return result


@rule("dim_as_value", "dimension_size")
def dim_as_value(step: Step, *operands: ir.Value) -> ir.Value:
    """The size of an axis, or what is computed from sizes."""
    dim = step.params["dim"] if "dim" in step.params else step.ins[0].shape[step.params["dimension"]]
    return step.build.cast(step.sizes.value(dim), kind_of(step.dtype))


@rule("empty", "empty2")
def empty(step: Step, *operands: Any) -> ir.Value:
    """Zeros, as on every processor."""
    return step.filled(step.outs[0].shape, 0, step.dtype)


@rule("pad")
def pad(step: Step, x: ir.Value, filling: ir.Value) -> ir.Value:
    """Filling between elements, then around them; where less than nothing is added, elements are cut off."""
    for axis, (_, _, between) in enumerate(step.params["padding_config"]):
        if not _same(between, 0):
            x = _spread(step, x, filling, axis, between)
    edges = [(low, high) for low, high, _ in step.params["padding_config"]]
    return padded(step, x, filling, edges)


def padded(step: Step, x: ir.Value, filling: ir.Value, edges: Any) -> ir.Value:
    """Pad, whose counts may be negative."""
    if all(_same(count, 0) for pair in edges for count in pair):
        return x
    counts = step.sizes.vector([low for low, _ in edges] + [high for _, high in edges])
    wide = {
        ir.DataType.INT16: np.int32,
        ir.DataType.UINT16: np.int32,
        ir.DataType.BFLOAT16: np.float32,
        ir.DataType.BOOL: np.uint8,
    }.get(x.dtype or ir.DataType.UNDEFINED)
    if wide is None:
        result: ir.Value = step.op("Pad", x, counts, filling)
        return result
    return step.through(wide, lambda a, b: step.op("Pad", a, counts, b), x, filling)


def _spread(step: Step, x: ir.Value, filling: ir.Value, axis: int, between: Any) -> ir.Value:
    """Filling after each element of an axis, but for the last."""
    shape = list(step.ins[0].shape)
    for before, (_, _, count) in enumerate(step.params["padding_config"][:axis]):
        shape[before] = shape[before] + (shape[before] - 1) * count
    return spread(step, x, filling, shape, axis, between)


def spread(step: Step, x: ir.Value, filling: ir.Value, shape: list[Any], axis: int, between: Any) -> ir.Value:
    """The same for a value of a given shape."""
    apart = step.op("Unsqueeze", x, [axis + 1])
    edges = [(0, 0)] * (axis + 1) + [(0, between)] + [(0, 0)] * (len(shape) - axis - 1)
    wide = padded(step, apart, filling, edges)
    joined = step.shaped(wide, [*shape[:axis], shape[axis] * (between + 1), *shape[axis + 1 :]])
    end = step.sizes.vector([shape[axis] + (shape[axis] - 1) * between])
    result: ir.Value = step.op("Slice", joined, [0], end, [axis])
    return result
