"""Reductions, and places of extreme elements."""

from __future__ import annotations

from typing import Any

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
import onnx_ir as ir
from jax import lax

from entrepot.exporters.jax.step import Step, kind_of
from entrepot.exporters.jax.table import rule
from entrepot.exporters.truth import all_of, any_of

WIDE = {
    "int8": np.int32,
    "int16": np.int32,
    "uint8": np.int32,
    "uint16": np.int32,
    "uint32": np.int64,
    "uint64": np.int64,
}
"""What ONNX sums instead of types that it does not sum."""


def _reduced(step: Step, op_type: str, x: ir.Value) -> ir.Value:
    axes = [int(axis) for axis in step.params["axes"]]
    if not axes:
        return x
    wide = WIDE.get(np.dtype(step.ins[0].dtype).name)
    if wide is None:
        result: ir.Value = step.op(op_type, x, axes, keepdims=0)
        return result
    return step.through(wide, lambda value: step.op(op_type, value, axes, keepdims=0), x)


@rule("reduce_sum")
def reduce_sum(step: Step, x: ir.Value) -> ir.Value:
    """ReduceSum; sums of integers wrap around."""
    return _reduced(step, "ReduceSum", x)


@rule("reduce_prod")
def reduce_prod(step: Step, x: ir.Value) -> ir.Value:
    """ReduceProd."""
    return _reduced(step, "ReduceProd", x)


@rule("reduce_max")
def reduce_max(step: Step, x: ir.Value) -> ir.Value:
    """ReduceMax; NaN if there is one."""
    return _extreme(step, "ReduceMax", x)


@rule("reduce_min")
def reduce_min(step: Step, x: ir.Value) -> ir.Value:
    """ReduceMin; NaN if there is one."""
    return _extreme(step, "ReduceMin", x)


def _extreme(step: Step, op_type: str, x: ir.Value) -> ir.Value:
    if x.dtype != ir.DataType.UINT64:
        return _reduced(step, op_type, x)
    top = step.number(1 << 63, x)  # the order of unsigned numbers is that of signed ones with the first bit turned
    turned = step.build.cast(step.op("BitwiseXor", x, top), np.int64)
    found = step.op(op_type, turned, [int(axis) for axis in step.params["axes"]], keepdims=0)
    return step.op("BitwiseXor", step.build.cast(found, np.uint64), top)


@rule("reduce_or")
def reduce_or(step: Step, x: ir.Value) -> ir.Value:
    """Whether any holds; of integers, the bits that any has."""
    return _logical(step, any_of, lax.bitwise_or, x)


@rule("reduce_and")
def reduce_and(step: Step, x: ir.Value) -> ir.Value:
    """Whether all hold; of integers, the bits that all have."""
    return _logical(step, all_of, lax.bitwise_and, x)


@rule("reduce_xor")
def reduce_xor(step: Step, x: ir.Value) -> Any:
    """Whether an odd number holds; of integers, the bits that an odd number has."""
    if step.dtype != np.bool_:
        return _folded(step, lax.bitwise_xor, 0, x)
    total = step.op("ReduceSum", step.build.cast(x, np.int32), list(step.params["axes"]), keepdims=0)
    return step.build.cast(step.op("Mod", total, 2), np.bool_)


def _logical(step: Step, truth: Any, function: Any, x: ir.Value) -> Any:
    if step.dtype != np.bool_:
        return _folded(step, function, 0 if function is lax.bitwise_or else -1, x)
    axes = [int(axis) for axis in step.params["axes"]]
    return truth(step.build, x, axes) if axes else x


def _folded(step: Step, function: Any, start: int, x: ir.Value) -> list[Any]:
    """One element after the other, along one axis after the other."""
    axes = sorted(step.params["axes"], reverse=True)

    def fold(x: Any) -> Any:
        for axis in axes:
            first = jnp.full([*x.shape[:axis], *x.shape[axis + 1 :]], start, x.dtype)
            x, _ = lax.scan(lambda carry, each: (function(carry, each), None), first, jnp.moveaxis(x, axis, 0))
        return x

    return step.in_jax(fold, x)


@rule("reduce")
def reduce(step: Step, *operands: ir.Value) -> list[Any]:
    """Any function of two, one element after the other."""
    count, program = len(operands) // 2, step.params["jaxpr"]
    axes = sorted(step.params["dimensions"], reverse=True)

    def combined(carry: Any, each: Any) -> Any:
        flat = vectorised(program, carry[0].ndim)
        return tuple(flat(*carry, *each)), None

    def fold(*given: Any) -> Any:
        values, starts = given[:count], given[count:]
        for axis in axes:
            firsts = tuple(
                jnp.broadcast_to(start, [*value.shape[:axis], *value.shape[axis + 1 :]])
                for value, start in zip(values, starts, strict=True)
            )
            values, _ = lax.scan(combined, firsts, tuple(jnp.moveaxis(value, axis, 0) for value in values))
        return list(values)

    return step.in_jax(fold, *operands)


def vectorised(program: Any, axes: int) -> Any:
    """A program on scalars, mapped over axes."""
    closed = program if hasattr(program, "consts") else jax.extend.core.ClosedJaxpr(program, ())
    function = jax.extend.core.jaxpr_as_fun(closed)
    for _ in range(axes):
        function = jax.vmap(function)
    return function


@rule("argmax")
def argmax(step: Step, x: ir.Value) -> ir.Value:
    """ArgMax; the first NaN, if there is one."""
    return _place(step, "ArgMax", x)


@rule("argmin")
def argmin(step: Step, x: ir.Value) -> ir.Value:
    """ArgMin; the first NaN, if there is one."""
    return _place(step, "ArgMin", x)


def _place(step: Step, op_type: str, x: ir.Value) -> ir.Value:
    (axis,) = step.params["axes"]
    old = np.dtype(step.ins[0].dtype)
    if old.kind in "iub":
        wide = step.build.cast(
            x, np.int64 if old.itemsize >= 4 and old.kind == "u" else np.int32 if old.itemsize < 8 else np.int64
        )
    else:
        wide = x if old.itemsize >= 4 else step.build.cast(x, np.float32)
        extreme = step.number(np.inf if op_type == "ArgMax" else -np.inf, wide)
        is_nan = step.op("IsNaN", wide)
        found = step.op("ArgMax", step.build.cast(is_nan, np.int32), axis=axis, keepdims=0)
        has_nan = step.build.cast(step.op("ReduceMax", step.build.cast(is_nan, np.int32), [axis], keepdims=0), np.bool_)
        place = step.op(op_type, step.op("Where", is_nan, extreme, wide), axis=axis, keepdims=0)
        return step.build.cast(step.op("Where", has_nan, found, place), kind_of(step.dtype))
    return step.build.cast(step.op(op_type, wide, axis=axis, keepdims=0), kind_of(step.dtype))
