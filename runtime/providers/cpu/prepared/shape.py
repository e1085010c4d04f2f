"""Shape and movement with constant axes, sizes and bounds: everything but the view itself is worked out once.

Most of these run on a handful of numbers, between the operators that do the work; what they cost is Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from entrepot.runtime.kernels import movement
from entrepot.runtime.kernels.cast import element_type
from entrepot.runtime.kernels.shape import resolve_shape
from entrepot.runtime.node_view import NodeView
from entrepot.runtime.providers.cpu.backend import NUMPY, pad_constant
from entrepot.runtime.providers.cpu.half import converted
from entrepot.runtime.providers.cpu.prepared.constants import Array, constant, is_given
from entrepot.runtime.providers.cpu.table import prepared

Kernel = Callable[..., Any]

_MOST_DIMS = 64
"""More than an array of NumPy can have."""


@prepared("Reshape", 25)
def reshape(node: NodeView) -> Kernel | None:
    """To a constant shape."""
    wanted = constant(node, 1)
    if wanted is None or wanted.min(initial=0) < -1:
        return None
    shape, keep_zeros = tuple(wanted.tolist()), node.attributes.get("allowzero", 0)
    if 0 in shape and not keep_zeros:
        return lambda data, shape_: data.reshape(resolve_shape(data.shape, shape))
    return lambda data, shape_: data.reshape(shape)


@prepared("Unsqueeze", 25)
def unsqueeze(node: NodeView) -> Kernel | None:
    """By an index with ``None`` at the new axes."""
    axes = constant(node, 1)
    if axes is None:
        return None
    places = dict.fromkeys(axes.reshape(-1).tolist(), None)
    index = _index(places) if len(places) == axes.size else None
    return None if index is None else lambda data, axes_: data[index]


@prepared("Squeeze", 25)
def squeeze(node: NodeView) -> Kernel | None:
    """Of constant axes."""
    axes = constant(node, 1)
    if axes is None:
        return None
    places = tuple(axes.tolist())
    return lambda data, axes_: data.squeeze(places)


@prepared("Slice", 13)
def slice_(node: NodeView) -> Kernel | None:
    """By a constant index."""
    bounds = [constant(node, position) for position in range(1, 5)]
    if any(bound is None and is_given(node, position) for position, bound in enumerate(bounds, 1)):
        return None
    starts, ends, axes, steps = bounds
    given = node.inputs[0]
    if starts is None or ends is None or given is None or given.shape is None:
        return None
    index = _index(dict(movement.slices(len(given.shape), starts, ends, axes, steps)))
    return None if index is None else lambda data, *bounds_: data[index]


@prepared("Gather", 13)
def gather(node: NodeView) -> Kernel | None:
    """Of one constant place, as a view."""
    place = constant(node, 1)
    if place is None or place.ndim:
        return None
    index = _index({node.attributes.get("axis", 0): int(place)})
    return lambda data, indices: data[index]


@prepared("Split", 18)
def split(node: NodeView) -> Kernel | None:
    """Into parts of constant sizes, as views."""
    sizes = constant(node, 1)
    axis = node.attributes.get("axis", 0)
    if sizes is None:
        return None
    ends = np.cumsum(sizes).tolist()
    parts = [_index({axis: slice(end - size, end)}) for size, end in zip(sizes.tolist(), ends, strict=True)]
    total = ends[-1] if ends else 0

    def kernel(data: Array, split_: Array) -> tuple[Array, ...]:
        if data.shape[axis] != total:
            return movement.split(NUMPY, data, split_, axis=axis)  # raises the error that says why
        return tuple([data[part] for part in parts])

    return kernel


@prepared("Cast", 28)
def cast(node: NodeView) -> Kernel | None:
    """To a type of NumPy's own, from numbers."""
    target = element_type(node.attributes["to"])
    source = node.inputs[0].dtype if node.inputs[0] is not None else None
    if target.isbuiltin != 1 or target.kind == "O" or source is None or source.kind == "O":
        return None

    def kernel(input: Array) -> Array:
        return converted(input, target)

    return kernel


@prepared("Pad", 25)
def pad(node: NodeView) -> Kernel | None:
    """With zeros, on constant sides."""
    pads = constant(node, 1)
    if pads is None or is_given(node, 2) or is_given(node, 3) or pads.size == 0 or pads.min() < 0:
        return None
    if node.attributes.get("mode", "constant") != "constant":
        return None
    widths = movement.pad_widths(pads.size // 2, pads.tolist())

    def kernel(data: Array, *pads_: Array) -> Array:
        if data.ndim != len(widths) or data.dtype.kind == "O":
            return movement.pad(NUMPY, data, *pads_)
        return pad_constant(data, widths, 0)

    return kernel


def _index(entries: dict[int, Any]) -> tuple[Any, ...] | None:
    """An index with these entries at these axes.

    ``None`` when some count from the front and some from the back, or when no array has such axes.
    """
    axes = entries.keys()
    if any(not -_MOST_DIMS <= axis < _MOST_DIMS for axis in axes):
        return None
    full = slice(None)
    if not axes or min(axes) >= 0:
        return tuple(entries.get(axis, full) for axis in range(max(axes, default=-1) + 1))
    if max(axes) < 0:
        return (..., *(entries.get(axis, full) for axis in range(min(axes), 0)))
    return None
