"""Reductions over windows, and what sends elements back to where they were chosen."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
import onnx_ir as ir
from jax import lax

from entrepot.exporters.jax.dims import is_known
from entrepot.exporters.jax.primitives.shapes import padded, spread
from entrepot.exporters.jax.step import Step
from entrepot.exporters.jax.table import rule

_POOLED = ("float16", "float32")


@rule("reduce_window_max")
def reduce_window_max(step: Step, x: ir.Value) -> ir.Value:
    """MaxPool, or the largest of what is next to one another."""
    return _extreme(step, x, "Max")


@rule("reduce_window_min")
def reduce_window_min(step: Step, x: ir.Value) -> ir.Value:
    """The smallest, as the largest of what is turned round."""
    if step.dtype.name in _POOLED and _pooled_axes(step):
        return step.op("Neg", _extreme(step, step.op("Neg", x), "Max"))
    return _extreme(step, x, "Min")


def _extreme(step: Step, x: ir.Value, op_type: str) -> ir.Value:
    if (axes := _pooled_axes(step)) and step.dtype.name in _POOLED:
        return _pool(step, x, axes, "MaxPool")
    return _sliding(step, x, _least(step.dtype, op_type), lambda *each: _folded(step, op_type, each))


def _least(dtype: np.dtype[Any], op_type: str) -> Any:
    if dtype == np.bool_:
        return op_type == "Min"
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if op_type == "Max" else np.iinfo(dtype).max
    return -np.inf if op_type == "Max" else np.inf


@rule("reduce_window_sum")
def reduce_window_sum(step: Step, x: ir.Value) -> ir.Value:
    """AveragePool, times the size of a window; or the sum of what is next to one another."""
    axes = _pooled_axes(step)
    count = int(np.prod([step.params["window_dimensions"][axis] for axis in axes or []]))
    if axes and step.dtype.name in _POOLED and all(_is_one(each) for each in step.params["window_dilation"]):
        return step.op("Mul", _pool(step, x, axes, "AveragePool"), float(count))
    return _sliding(step, x, 0, lambda *each: _folded(step, "Add", each))


def _folded(step: Step, op_type: str, values: Sequence[ir.Value]) -> ir.Value:
    from entrepot.exporters.jax.primitives.arithmetic import larger

    result = values[0]
    for each in values[1:]:
        if op_type == "Add":
            result = step.op("Add", result, each)
        else:
            result = larger(step, op_type, "Or" if op_type == "Max" else "And", result, each)
    return result


def _is_one(number: Any) -> bool:
    return is_known(number) and number == 1


def _pooled_axes(step: Step) -> list[int] | None:
    """The axes of windows, where one of ONNX's pools is what is asked for."""
    params = step.params
    rank = len(step.ins[0].shape)
    axes = [
        axis for axis in range(rank)
        if not (_is_one(params["window_dimensions"][axis]) and _is_one(params["window_strides"][axis]))
        or tuple(params["padding"][axis]) != (0, 0)
    ]  # fmt: skip
    plain = all(_is_one(each) for each in params["base_dilation"]) and 1 <= len(axes) <= 3
    windows = [params["window_dimensions"][axis] for axis in axes]
    known = all(is_known(each) for each in (*windows, *(count for axis in axes for count in params["padding"][axis])))
    if not (plain and known):
        return None
    reach = {axis: (params["window_dimensions"][axis] - 1) * params["window_dilation"][axis] for axis in axes}
    fits = all(0 <= count <= reach[axis] for axis in axes for count in params["padding"][axis])
    return axes if fits else None


def _pool(step: Step, x: ir.Value, axes: list[int], op_type: str) -> ir.Value:
    """A pool, for which the other axes come first: two of them, which they are made if they are fewer or more."""
    params, rank = step.params, len(step.ins[0].shape)
    others = [axis for axis in range(rank) if axis not in axes]
    order = [*others, *axes]
    moved, back = _with_two(step, step.transposed(x, order), order, len(others))
    pads = [params["padding"][axis] for axis in axes]
    extra = (
        {"count_include_pad": 1}
        if op_type == "AveragePool"
        else {"dilations": [int(params["window_dilation"][axis]) for axis in axes]}
    )
    found = step.op(
        op_type, moved, kernel_shape=[int(params["window_dimensions"][axis]) for axis in axes],
        strides=[int(params["window_strides"][axis]) for axis in axes],
        pads=[int(low) for low, _ in pads] + [int(high) for _, high in pads], **extra,
    )  # fmt: skip
    return step.transposed(back(found), [order.index(axis) for axis in range(rank)])


def _with_two(step: Step, x: ir.Value, order: list[int], count: int) -> tuple[ir.Value, Callable[..., ir.Value]]:
    """A value with two axes for those at its front, and what undoes that."""
    sizes, outs = ([each.shape[axis] for axis in order] for each in (step.ins[0], step.outs[0]))
    if count <= 2:
        missing = [*range(2 - count)]
        wide = step.op("Unsqueeze", x, missing) if missing else x
        return wide, lambda found: step.op("Squeeze", found, missing) if missing else found
    ones = [at for at in range(count) if _is_one(sizes[at])][: count - 2]
    if len(ones) == count - 2:
        return step.op("Squeeze", x, ones), lambda found: step.op("Unsqueeze", found, ones)
    flat = step.shaped(x, [1, math.prod(sizes[:count]), *sizes[count:]])
    return flat, lambda found: step.shaped(found, outs)


def _sliding(step: Step, x: ir.Value, start: Any, function: Callable[..., ir.Value]) -> ir.Value:
    """Slices that lie a place apart, taken together; one axis after the other."""
    params, shape = step.params, list(step.ins[0].shape)
    filling = step.build.constant(start, x.dtype)
    for axis, by in enumerate(params["base_dilation"]):
        if not _is_one(by):
            x = spread(step, x, filling, shape, axis, by - 1)
            shape[axis] = shape[axis] + (shape[axis] - 1) * (by - 1)
    x = padded(step, x, filling, params["padding"])
    for axis, size in enumerate(params["window_dimensions"]):
        stride, apart = params["window_strides"][axis], params["window_dilation"][axis]
        if _is_one(size) and _is_one(stride):
            continue
        count = step.outs[0].shape[axis]
        length = (count - 1) * stride + 1
        parts = [
            step.op(
                "Slice",
                x,
                step.sizes.vector([at * apart]),
                step.sizes.vector([at * apart + length]),
                [axis],
                step.sizes.vector([stride]),
            )
            for at in range(int(size))
        ]
        x = function(*parts)
    return x


@rule("reduce_window")
def reduce_window(step: Step, *operands: ir.Value) -> list[Any]:
    """Any function of two, over the elements of each window."""
    count, program = len(operands) // 2, step.params["jaxpr"]
    closed = (
        program if hasattr(program, "consts") else jax.extend.core.ClosedJaxpr(program, step.params.get("consts", ()))
    )
    function = jax.extend.core.jaxpr_as_fun(closed)
    outs = step.outs[0].shape
    for _ in outs:
        function = jax.vmap(function)

    def slid(*given: Any) -> Any:
        starts = given[count:]
        config = [
            (low, high, by - 1)
            for (low, high), by in zip(step.params["padding"], step.params["base_dilation"], strict=True)
        ]
        values = [lax.pad(value, start, config) for value, start in zip(given[:count], starts, strict=True)]
        result = [jnp.broadcast_to(start, outs) for start in starts]
        for place in np.ndindex(*step.params["window_dimensions"]):
            begin = [at * apart for at, apart in zip(place, step.params["window_dilation"], strict=True)]
            end = [
                low + (size - 1) * by + 1
                for low, size, by in zip(begin, outs, step.params["window_strides"], strict=True)
            ]
            result = function(
                *result, *(lax.slice(value, begin, end, step.params["window_strides"]) for value in values)
            )
        return list(result)

    return step.in_jax(slid, *operands)


@rule("select_and_scatter_add")
def select_and_scatter_add(step: Step, source: ir.Value, operand: ir.Value) -> list[Any]:
    """Adds each element of the source where its window has its extreme: the first one in order."""
    params, dtype = step.params, step.dtype
    worst = dtype.type(_least(dtype, "Max" if _seeks_largest(params) else "Min"))

    def sent_back(source: Any, operand: Any) -> Any:
        padding = [(low, high, 0) for low, high in params["padding"]]
        wide = lax.pad(operand, worst, padding)
        chosen = jnp.zeros(source.shape, np.int32)
        for at, (_, better) in enumerate(_improving(params, wide, source.shape, worst)):
            chosen = jnp.where(better, at, chosen)
        total = jnp.zeros_like(wide)
        for at, (begin, end, strides) in enumerate(_windows(params, source.shape)):
            own = jnp.where(chosen == at, source, dtype.type(0))
            config = [
                (low, full - high, by - 1) for low, high, full, by in zip(begin, end, wide.shape, strides, strict=True)
            ]
            total = total + lax.pad(own, dtype.type(0), config)
        begin = [low for low, _ in params["padding"]]
        return lax.slice(total, begin, [low + size for low, size in zip(begin, operand.shape, strict=True)])

    return step.in_jax(sent_back, source, operand)


def _windows(params: Any, outs: Sequence[Any]) -> Any:
    """Begin, end and stride of the slices that hold each place of every window."""
    strides = params["window_strides"]
    for place in np.ndindex(*params["window_dimensions"]):
        end = [low + (size - 1) * by + 1 for low, size, by in zip(place, outs, strides, strict=True)]
        yield list(place), end, list(strides)


def _seeks_largest(params: Any) -> bool:
    return bool(params["select_prim"].name == "ge")


def _improving(params: Any, wide: Any, outs: Sequence[Any], worst: Any) -> Iterator[tuple[Any, Any]]:
    """The slices of ``_windows``, and where each is better than those before it."""
    best = jnp.full(outs, worst)
    for at, bounds in enumerate(_windows(params, outs)):
        each = lax.slice(wide, *bounds)
        better = (each > best) if _seeks_largest(params) else (each < best)
        better = better | ((at == 0) & (each == best))
        best = jnp.where(better, each, best)
        yield bounds, better


@rule("select_and_gather_add")
def select_and_gather_add(step: Step, tangents: ir.Value, operand: ir.Value) -> list[Any]:
    """The element beside the extreme of each window."""
    params, dtype = step.params, step.dtype
    worst = dtype.type(_least(dtype, "Max" if _seeks_largest(params) else "Min"))

    def taken(tangents: Any, operand: Any) -> Any:
        padding = [(low, high, 0) for low, high in params["padding"]]
        wide, beside = lax.pad(operand, worst, padding), lax.pad(tangents, dtype.type(0), padding)
        found = jnp.zeros(step.outs[0].shape, dtype)
        for bounds, better in _improving(params, wide, step.outs[0].shape, worst):
            found = jnp.where(better, lax.slice(beside, *bounds), found)
        return found

    return step.in_jax(taken, tangents, operand)
