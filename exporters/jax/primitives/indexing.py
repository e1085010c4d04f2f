"""Gather and scatter with any dimension numbers, as GatherND and ScatterND.

The axes of the operand that indices point into, or of which a window is only a part, come first; the others are whole
in every window and stay behind. An index then is a place for each of the first: where a window starts, and where in it
an element lies.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
import onnx_ir as ir
from jax import lax

from entrepot.exporters.jax.dims import is_known
from entrepot.exporters.jax.keys import is_key
from entrepot.exporters.jax.primitives.arithmetic import chosen
from entrepot.exporters.jax.primitives.reductions import vectorised
from entrepot.exporters.jax.primitives.shapes import along
from entrepot.exporters.jax.step import Step
from entrepot.exporters.jax.table import rule

_Modes = lax.GatherScatterMode


@dataclass
class _Windows:
    """Where windows of an operand lie.

    Attributes:
        shape: Of the operand.
        sizes: Of a window, along every axis of the operand.
        mapped: The axis of the operand that each part of an index is for.
        dropped: Axes along which a window is one element, and which results lack.
        batched: Axes of the operand that go with axes of the indices, and those.
        indices: Shape of the indices without the last axis.
    """

    shape: Sequence[Any]
    sizes: Sequence[Any]
    mapped: Sequence[int]
    dropped: Sequence[int]
    batched: tuple[Sequence[int], Sequence[int]]
    indices: Sequence[Any]

    @property
    def first(self) -> list[int]:
        """Axes that are indexed."""
        partial = [axis for axis, size in enumerate(self.sizes) if str(size) != str(self.shape[axis])]
        return sorted({*self.mapped, *self.batched[0], *partial}) or [0]

    @property
    def rest(self) -> list[int]:
        """Axes that are whole in every window."""
        return [axis for axis in range(len(self.shape)) if axis not in self.first]

    @property
    def windowed(self) -> list[int]:
        """Axes that are indexed and that results have."""
        return [axis for axis in self.first if axis not in (*self.dropped, *self.batched[0])]


@rule("gather")
def gather(step: Step, x: ir.Value, indices: ir.Value) -> ir.Value:
    """The windows of an operand."""
    numbers, mode = step.params["dimension_numbers"], step.params["mode"]
    windows = _Windows(
        step.ins[0].shape, step.params["slice_sizes"], numbers.start_index_map, numbers.collapsed_slice_dims,
        (numbers.operand_batching_dims, numbers.start_indices_batching_dims), step.ins[1].shape[:-1],
    )  # fmt: skip
    starts = _starts(step, windows, indices)
    valid = _valid(step, windows, starts) if mode == _Modes.FILL_OR_DROP else None
    starts = {axis: _clipped(step, windows, axis, start) for axis, start in starts.items()}
    found = _gathered(step, windows, starts, x)
    order = _order(windows, numbers.offset_dims, len(step.outs[0].shape))
    if valid is not None:
        shown = step.op("Unsqueeze", valid, [*range(len(windows.indices), len(step.outs[0].shape))])
        found = chosen(step, shown, found, step.number(_filling(step), found))
    return step.transposed(found, order)


def _gathered(step: Step, windows: _Windows, starts: dict[int, ir.Value], x: ir.Value) -> ir.Value:
    """Windows with the axes of the indices, then those of windows that are indexed, then the rest."""
    if len(windows.first) == 1 and not windows.windowed and not windows.batched[0]:
        (axis,) = windows.first
        count = len(windows.indices)
        found = step.op("Gather", x, starts[axis], axis=axis)
        before = [*range(axis)]
        return step.transposed(
            found, [*range(axis, axis + count), *before, *range(axis + count, len(windows.shape) - 1 + count)]
        )
    places = _places(step, windows, starts)
    return step.op("GatherND", step.transposed(x, [*windows.first, *windows.rest]), places)


def _filling(step: Step) -> Any:
    """What is beyond the operand: given, or NaN, the smallest integer, the largest unsigned one."""
    given = step.params.get("fill_value")
    if given is not None:
        return given
    if is_key(step.outs[0]):
        return np.iinfo(np.uint64).max
    kind = step.dtype.kind
    if kind == "i":
        return np.iinfo(step.dtype).min
    return np.iinfo(step.dtype).max if kind == "u" else (True if kind == "b" else np.nan)


def _order(windows: _Windows, offsets: Sequence[int], rank: int) -> list[int]:
    """Where each axis of the result comes from."""
    count = len(windows.indices)
    present = [*windows.windowed, *windows.rest]
    own = [axis for axis in range(len(windows.shape)) if axis not in (*windows.dropped, *windows.batched[0])]
    window = iter([count + present.index(axis) for axis in own])
    batch = iter(range(count))
    return [next(window) if axis in offsets else next(batch) for axis in range(rank)]


def _starts(step: Step, windows: _Windows, indices: ir.Value) -> dict[int, ir.Value]:
    """For each indexed axis where windows start, as int64, of the shape of the indices or one that becomes it."""
    wide = step.build.cast(indices, np.int64)
    parts = {axis: step.op("Gather", wide, np.array(at, np.int64), axis=-1) for at, axis in enumerate(windows.mapped)}
    for axis, own in zip(*windows.batched, strict=True):
        run = along(step, windows.indices[own])
        lined = [at for at in range(len(windows.indices)) if at != own]
        parts[axis] = step.expanded(step.op("Unsqueeze", run, lined) if lined else run, windows.indices)
    for axis in windows.first:
        if axis not in parts:
            parts[axis] = step.filled(windows.indices, 0, np.int64)
    return parts


def _room(windows: _Windows, axis: int) -> Any:
    return windows.shape[axis] - windows.sizes[axis]


def _clipped(step: Step, windows: _Windows, axis: int, start: ir.Value) -> ir.Value:
    if axis not in windows.mapped:
        return start
    zero = step.build.constant(np.array(0, np.int64))
    result: ir.Value = step.op("Max", step.op("Min", start, step.sizes.value(_room(windows, axis))), zero)
    return result


def _valid(step: Step, windows: _Windows, starts: dict[int, ir.Value]) -> ir.Value:
    """Which windows lie inside of the operand."""
    valid: Any = None
    for axis in windows.mapped:
        low = step.op("GreaterOrEqual", starts[axis], np.array(0, np.int64))
        high = step.op("LessOrEqual", starts[axis], step.sizes.value(_room(windows, axis)))
        both = step.op("And", low, high)
        valid = both if valid is None else step.op("And", valid, both)
    return valid if valid is not None else step.filled(windows.indices, True, np.bool_)


def _places(step: Step, windows: _Windows, starts: dict[int, ir.Value]) -> ir.Value:
    """Indices for GatherND: their axes, those of windows, and the place along each indexed axis."""
    count, inner = len(windows.indices), windows.windowed
    sizes = [windows.sizes[axis] for axis in inner]
    parts = []
    for axis in windows.first:
        start = starts[axis]
        if inner:
            start = step.op("Unsqueeze", start, [*range(count, count + len(inner))])
        if axis in inner and not (is_known(windows.sizes[axis]) and windows.sizes[axis] == 1):
            run = along(step, windows.sizes[axis])
            behind = len(inner) - inner.index(axis) - 1
            start = step.op("Add", start, step.op("Unsqueeze", run, [*range(1, 1 + behind)]) if behind else run)
        whole = step.expanded(start, [*windows.indices, *sizes]) if inner else start
        parts.append(step.op("Unsqueeze", whole, [-1]))
    return parts[0] if len(parts) == 1 else step.op("Concat", *parts, axis=-1)


def _scatter(reduction: str | None) -> Any:
    def translate(step: Step, x: ir.Value, indices: ir.Value, updates: ir.Value) -> Any:
        return _scattered(step, x, indices, updates, reduction)

    return translate


for _name, _reduction in {
    "scatter-add": "add", "scatter-mul": "mul", "scatter-max": "max", "scatter-min": "min",
}.items():  # fmt: skip
    rule(_name)(_scatter(_reduction))


@rule("scatter")
def scatter(step: Step, x: ir.Value, indices: ir.Value, updates: ir.Value) -> Any:
    """Updates in the place of elements, or, by ``x.at[i].apply(f)``, what a function makes of the elements."""
    combine = step.params["update_jaxpr"]
    if combine is None:
        return _scattered(step, x, indices, updates, None)
    if str(combine.invars[1]) in map(str, (*combine.outvars, *(each for eqn in combine.eqns for each in eqn.invars))):
        raise step.unsupported("its function combines elements and updates", hint="use at[...].add, max, min or mul")
    return step.in_jax(functools.partial(_applied, step.params), x, indices, updates)


def _applied(params: Mapping[str, Any], x: Any, indices: Any, updates: Any) -> Any:
    """The function of every element, as often as an index points to it."""
    combine = vectorised(jax.extend.core.ClosedJaxpr(params["update_jaxpr"], params["update_consts"]), len(x.shape))

    def apply(elements: Any) -> Any:
        return combine(elements, elements)[0]

    ones = jnp.ones(updates.shape, np.int32)
    how = {name: params[name] for name in ("dimension_numbers", "indices_are_sorted", "unique_indices", "mode")}
    times = lax.scatter_add(jnp.zeros(x.shape, np.int32), indices, ones, **how)
    if params["unique_indices"]:
        return jnp.where(times > 0, apply(x), x)
    most = jnp.max(times, initial=0)
    return lax.fori_loop(0, most, lambda done, found: jnp.where(done < times, apply(found), found), x)


@rule("scatter-sub")
def scatter_sub(step: Step, x: ir.Value, indices: ir.Value, updates: ir.Value) -> ir.Value:
    """Adds what is the other way round."""
    return _scattered(step, x, indices, step.op("Sub", step.number(0, updates), updates), "add")


def _scattered(step: Step, x: ir.Value, indices: ir.Value, updates: ir.Value, reduction: str | None) -> ir.Value:
    """ScatterND; windows that do not lie inside go to a row that is cut off afterwards."""
    numbers = step.params["dimension_numbers"]
    shape, given = step.ins[0].shape, step.ins[2].shape
    dropped, batched = numbers.inserted_window_dims, numbers.operand_batching_dims
    own = [axis for axis in range(len(shape)) if axis not in (*dropped, *batched)]
    sizes: list[Any] = [1] * len(shape)
    for axis, place in zip(own, numbers.update_window_dims, strict=True):
        sizes[axis] = given[place]
    windows = _Windows(
        shape, sizes, numbers.scatter_dims_to_operand_dims, dropped,
        (batched, numbers.scatter_indices_batching_dims), step.ins[1].shape[:-1],
    )  # fmt: skip
    starts = _starts(step, windows, indices)
    clips = step.params["mode"] in (_Modes.CLIP, _Modes.PROMISE_IN_BOUNDS) or not windows.mapped
    valid = None if clips else _valid(step, windows, starts)
    starts = {axis: _clipped(step, windows, axis, start) for axis, start in starts.items()}
    places = _places(step, windows, starts)
    inner = [*windows.windowed, *windows.rest]
    batch = [at for at in range(len(given)) if at not in numbers.update_window_dims]
    window = [numbers.update_window_dims[own.index(axis)] for axis in inner]
    moved = step.transposed(updates, [*batch, *window])
    order = [*windows.first, *windows.rest]
    target = step.transposed(x, order)
    if valid is not None:
        target, places = _with_spare(step, windows, target, places, valid)
    found = _combined(step, target, places, moved, reduction)
    if valid is not None:
        found = step.op("Slice", found, [0], [-1], [0])
    return step.transposed(found, [order.index(axis) for axis in range(len(order))])


def _with_spare(
    step: Step, windows: _Windows, target: ir.Value, places: ir.Value, valid: ir.Value
) -> tuple[ir.Value, ir.Value]:
    """The operand with a row more, and indices of which those that are not valid point to it."""
    row = step.op("Slice", target, [0], [1], [0])
    first = windows.shape[windows.first[0]]
    if is_known(first) and first == 0:
        row = step.filled([1, *(windows.shape[axis] for axis in [*windows.first, *windows.rest][1:])], 0, target.dtype)
    spare = step.op("Concat", target, row, axis=0)
    last = np.zeros(len(windows.first), np.int64)
    beyond = step.op("Mul", step.sizes.value(first), step.build.constant(_one_first(last)))
    shown = step.op(
        "Unsqueeze", valid, [*range(len(windows.indices), len(windows.indices) + len(windows.windowed) + 1)]
    )
    return spare, step.op("Where", shown, places, beyond)


def _one_first(numbers: np.ndarray) -> np.ndarray:
    numbers[0] = 1
    return numbers


def _combined(step: Step, target: ir.Value, places: ir.Value, updates: ir.Value, reduction: str | None) -> ir.Value:
    """ScatterND, of truth values through integers."""
    if target.dtype != ir.DataType.BOOL or reduction is None:
        result: ir.Value = step.op("ScatterND", target, places, updates, reduction=reduction)
        return result
    kind = {"add": "max", "mul": "min"}.get(reduction, reduction)
    return step.through(np.int32, lambda x, y: step.op("ScatterND", x, places, y, reduction=kind), target, updates)
