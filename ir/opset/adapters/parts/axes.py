"""Axes counted from the front, as most operators required before opset 11, and in the form a version takes."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, adapter, extended


def normalised_axis(op: OpBuilder, *, name: str = "axis", default: int = 0, extra: int = 0) -> Replacement:
    """Rewrite a negative axis attribute as a positive one; needs the rank only then.

    Args:
        op: The place.
        name: The attribute.
        default: Its value when absent.
        extra: How many more axes the output has than the input, when the axis counts in the output.
    """
    axis = op.attr(name, default)
    if axis < 0:
        op.set(**{name: axis + op.need_rank(op.x()) + extra})


def normalised_axes(op: OpBuilder, *, name: str = "axes", extra: int = 0) -> Replacement:
    """Rewrite negative entries of an axes attribute as positive ones; needs the rank only then."""
    axes = op.attr(name)
    if axes and min(axes) < 0:
        rank = op.need_rank(op.x()) + extra
        op.set(**{name: sorted(axis % rank for axis in axes)})


def negative_axis_allowed(op_type: str, older: int, newer: int, *, name: str = "axis", default: int = 0) -> None:
    """Declare that the newer version differs in accepting a negative axis."""
    extended(op_type, older, newer)
    adapter(op_type, newer, older)(_one(name, default))


def negative_axes_allowed(op_type: str, older: int, newer: int) -> None:
    """Declare that the newer version differs in accepting negative axes."""
    extended(op_type, older, newer)
    adapter(op_type, newer, older)(_several)


def _one(name: str, default: int) -> Callable[[OpBuilder, ir.Node], Replacement]:
    def rule(op: OpBuilder, _node: ir.Node) -> Replacement:
        """Count the axis from the front."""
        return normalised_axis(op, name=name, default=default)

    return rule


def _several(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Count the axes from the front."""
    return normalised_axes(op)


def unsqueezed(op: OpBuilder, x: ir.Value, axes: list[int]) -> ir.Value:
    """Insert axes of size 1; their numbers became an input in version 13."""
    if not axes:
        return x
    result: ir.Value = op.Unsqueeze(x, axes=axes) if op.version < 13 else op.Unsqueeze(x, op.ints(*axes))
    return result


def summed(op: OpBuilder, x: ir.Value, axes: list[int], *, keepdims: int = 0) -> ir.Value:
    """The sum over some axes; their numbers became an input in version 13."""
    if op.version < 13:
        result: ir.Value = op.ReduceSum(x, axes=axes, keepdims=keepdims)
    else:
        result = op.ReduceSum(x, op.ints(*axes), keepdims=keepdims)
    return result
