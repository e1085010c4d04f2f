"""Elements moved, repeated, joined and cut, never changed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from entrepot.ir.errors import InputError
from entrepot.runtime.kernels.axes import counted, lengths_within
from entrepot.runtime.kernels.backend import Array, Backend, HostArray
from entrepot.runtime.kernels.table import shared

PAD_MODES = {"constant": "constant", "reflect": "reflect", "edge": "edge", "wrap": "wrap"}


@shared("Transpose", 25)
def transpose(xp: Backend, data: Array, *, perm: Sequence[int] | None = None) -> Array:
    """The axes in the order ``perm``; reversed without it."""
    return xp.transpose(data, perm)


@shared("Tile", 13)
def tile(xp: Backend, input: Array, repeats: HostArray) -> Array:
    """Each axis repeated as a whole, the given number of times."""
    shape = tuple(xp.shape(input))
    if repeats.shape != (len(shape),):
        raise InputError(f"Tile: repeats of shape {repeats.shape} for an array of shape {shape}")
    return xp.tile(input, repeats.tolist())


@shared("Concat", 13)
def concat(xp: Backend, *inputs: Array, axis: int) -> Array:
    """The inputs one after the other along ``axis``."""
    return xp.concat(inputs, axis)


@shared("Split", 18)
def split(
    xp: Backend,
    input: Array,
    split: HostArray | None = None,
    *,
    axis: int = 0,
    num_outputs: int | None = None,
    n_outputs: int = 1,
) -> tuple[Array, ...]:
    """Parts along ``axis``: of the sizes given, or equal ones, of which the last may be smaller."""
    size = xp.shape(input)[axis]
    sizes = equal_parts(size, num_outputs or n_outputs) if split is None else split.tolist()
    if sum(sizes) != size or min(sizes, default=0) < 0:
        raise InputError(f"Split: parts of {sizes} do not make up the {size} entries of axis {axis}")
    return xp.split(input, sizes, axis)


def equal_parts(size: int, count: int) -> list[int]:
    """``size`` in ``count`` parts, all alike but the last ones."""
    part = -(-size // count)
    return [max(min(part, size - n * part), 0) for n in range(count)]


@shared("Slice", 13)
def slice_(
    xp: Backend,
    data: Array,
    starts: HostArray,
    ends: HostArray,
    axes: HostArray | None = None,
    steps: HostArray | None = None,
) -> Array:
    """From start to end by step on some axes; a negative step runs backwards."""
    for axis, wanted in slices(len(xp.shape(data)), starts, ends, axes, steps):
        places = range(*wanted.indices(xp.shape(data)[axis]))
        forward = places if places.step > 0 else places[::-1]  # not every framework slices backwards
        cut: list[slice] = [slice(None)] * len(xp.shape(data))
        cut[axis] = slice(forward.start, forward.stop, forward.step) if len(forward) else slice(0, 0)
        data = data[tuple(cut)]
        data = data if places.step > 0 else xp.flip(data, axis)
    return data


def slices(
    rank: int, starts: HostArray, ends: HostArray, axes: HostArray | None, steps: HostArray | None
) -> list[tuple[int, slice]]:
    """The axes to cut, with Python slices: ONNX clamps and counts from the end exactly as Python does.

    Raises:
        InputError: An axis is not there, or named twice, or a step is 0.
    """
    begin, stop = starts.tolist(), ends.tolist()
    step = [1] * len(begin) if steps is None else steps.tolist()
    along = [counted(axis, rank) for axis in (range(len(begin)) if axes is None else axes.tolist())]
    if 0 in step:
        raise InputError("Slice: a step of 0")
    if len(set(along)) < len(along):
        raise InputError(f"Slice: axes {along} name one of them twice")
    return [(axis, slice(*bounds)) for axis, *bounds in zip(along, begin, stop, step, strict=True)]


@shared("Pad", 25)
def pad(
    xp: Backend,
    data: Array,
    pads: HostArray,
    constant_value: Array | None = None,
    axes: HostArray | None = None,
    *,
    mode: str = "constant",
) -> Array:
    """Widen the axes by a constant, by the edge, mirrored or cyclically; a negative width cuts off."""
    if mode not in PAD_MODES:
        raise InputError(f"Pad takes mode {', '.join(PAD_MODES)}, not {mode!r}")
    widths = pad_widths(len(xp.shape(data)), pads.tolist(), None if axes is None else axes.tolist())
    if any(min(width) < 0 for width in widths):
        _check_cut(xp.shape(data), widths)
        data = data[tuple(slice(max(-before, 0), min(after, 0) or None) for before, after in widths)]
        widths = [(max(before, 0), max(after, 0)) for before, after in widths]
    blank = "" if xp.dtype(data).kind == "O" else 0
    value = blank if constant_value is None else xp.reshape(constant_value, ())
    return xp.pad(data, widths, PAD_MODES[mode], value)


def _check_cut(shape: Sequence[int], widths: Sequence[tuple[int, int]]) -> None:
    """Refuse negative widths that cut off more than there is; the sizes of a tracer are not looked at."""
    for size, (before, after) in zip(shape, widths, strict=True):
        if type(size) is int and size < -min(before, 0) - min(after, 0):
            raise InputError(f"Pad: widths ({before}, {after}) cut off more than the {size} entries of an axis")


def pad_widths(rank: int, pads: Sequence[int], axes: Sequence[int] | None = None) -> list[tuple[int, int]]:
    """(before, after) for every axis, from ONNX's list of all befores and then all afters."""
    along = range(rank) if axes is None else [counted(axis, rank) for axis in axes]
    if len(pads) != 2 * len(along):
        raise InputError(f"Pad: {len(pads)} widths for {len(along)} axes, not {2 * len(along)}")
    widths = [(0, 0)] * rank
    for axis, before, after in zip(along, pads[: len(along)], pads[len(along) :], strict=True):
        widths[axis] = (before, after)
    return widths


@shared("CenterCropPad", 18)
def center_crop_pad(xp: Backend, input_data: Array, shape: HostArray, *, axes: Sequence[int] | None = None) -> Array:
    """Cut or zero-pad evenly at both ends to these sizes; an odd element is cut in front and padded behind."""
    sizes = shape.tolist()
    rank = len(xp.shape(input_data))
    along = range(rank) if axes is None else [counted(axis, rank) for axis in axes]
    if len(sizes) != len(along):
        raise InputError(f"CenterCropPad: sizes {sizes} for {len(along)} axes")
    widths = [(0, 0)] * rank
    for axis, wanted in zip(along, sizes, strict=True):
        missing = wanted - xp.shape(input_data)[axis]
        before = missing // 2 if missing > 0 else -((-missing) // 2)
        widths[axis] = (before, missing - before)
    pads = [before for before, _ in widths] + [after for _, after in widths]
    return pad(xp, input_data, np.array(pads, np.int64))


@shared("DepthToSpace", 28)
def depth_to_space(xp: Backend, input: Array, *, blocksize: int, mode: str = "DCR") -> Array:
    """Blocks of channels laid out as blocks of pixels."""
    n, c, h, w = xp.shape(input)
    depth = c // blocksize**2
    if _is_depth_first(mode):
        parts = xp.transpose(xp.reshape(input, (n, blocksize, blocksize, depth, h, w)), (0, 3, 4, 1, 5, 2))
    else:
        parts = xp.transpose(xp.reshape(input, (n, depth, blocksize, blocksize, h, w)), (0, 1, 4, 2, 5, 3))
    return xp.reshape(parts, (n, depth, h * blocksize, w * blocksize))


@shared("SpaceToDepth", 28)
def space_to_depth(xp: Backend, input: Array, *, blocksize: int, mode: str = "DCR") -> Array:
    """Blocks of pixels laid out as blocks of channels."""
    n, c, h, w = xp.shape(input)
    high, wide = h // blocksize, w // blocksize
    parts = xp.reshape(input, (n, c, high, blocksize, wide, blocksize))
    parts = xp.transpose(parts, (0, 3, 5, 1, 2, 4) if _is_depth_first(mode) else (0, 1, 3, 5, 2, 4))
    return xp.reshape(parts, (n, c * blocksize**2, high, wide))


def _is_depth_first(mode: str) -> bool:
    if mode not in ("DCR", "CRD"):
        raise InputError(f"mode is DCR or CRD, not {mode!r}")
    return mode == "DCR"


@shared("ReverseSequence", 28)
def reverse_sequence(
    xp: Backend, input: Array, sequence_lens: HostArray, *, batch_axis: int = 1, time_axis: int = 0
) -> Array:
    """The first entries of every sequence backwards, as many as its length says; the rest as they are."""
    shape = xp.shape(input)
    rank = len(shape)
    given = lengths_within(xp, sequence_lens, shape[counted(time_axis, rank)], shape[counted(batch_axis, rank)])
    time = xp.reshape(xp.arange(0, shape[time_axis], 1, np.dtype(np.int64)), _along(time_axis, rank))
    lengths = xp.reshape(xp.astype(given, np.dtype(np.int64)), _along(batch_axis, rank))
    places = xp.where(time < lengths, lengths - xp.scalar(1, like=time) - time, time)
    return xp.take_along_axis(input, xp.broadcast_to(places, shape), time_axis)


def _along(axis: int, rank: int) -> list[int]:
    return [-1 if n == axis else 1 for n in range(rank)]
