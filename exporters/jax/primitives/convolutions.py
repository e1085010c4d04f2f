"""Convolutions with any dimension numbers, as Conv or ConvTranspose with the channels first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.jax.dims import is_known
from entrepot.exporters.jax.primitives.shapes import backwards, padded, spread
from entrepot.exporters.jax.step import Step, kind_of
from entrepot.exporters.jax.table import rule


@rule("conv_general_dilated")
def conv_general_dilated(step: Step, x: ir.Value, kernel: ir.Value) -> ir.Value:
    """A convolution of floating-point numbers; of integers, in float64."""
    kind = np.float64 if step.dtype.kind in "iu" else kind_of(step.dtype)
    return step.build.cast(convolution(step, x, kernel, kind), kind_of(step.dtype))


def convolution(step: Step, x: ir.Value, kernel: ir.Value, kind: Any) -> ir.Value:
    """Operands with the channels first, a convolution, and the axes of the result in order."""
    numbers = step.params["dimension_numbers"]
    moved = step.transposed(step.build.cast(x, kind), numbers.lhs_spec)
    weight = step.transposed(step.build.cast(kernel, kind), numbers.rhs_spec)
    shape = [step.ins[0].shape[axis] for axis in numbers.lhs_spec]
    kernel_shape = [int(step.ins[1].shape[axis]) for axis in numbers.rhs_spec]
    groups = step.params["feature_group_count"]
    if (parts := step.params["batch_group_count"]) > 1:
        moved, shape = _parted(step, moved, shape, parts)
        groups = parts
    found = _convolved(step, moved, weight, shape, kernel_shape, groups)
    back = [list(numbers.out_spec).index(axis) for axis in range(len(shape))]
    return step.transposed(found, back)


def _parted(step: Step, x: ir.Value, shape: list[Any], parts: int) -> tuple[ir.Value, list[Any]]:
    """Parts of a batch as groups of channels."""
    batch, channels, *rest = shape
    apart = step.shaped(x, [parts, batch // parts, channels, *rest])
    turned = step.transposed(apart, [1, 0, 2, *range(3, 3 + len(rest))])
    whole = [batch // parts, channels * parts, *rest]
    return step.shaped(turned, whole), whole


def _convolved(
    step: Step, x: ir.Value, weight: ir.Value, shape: list[Any], kernel_shape: list[int], groups: int
) -> ir.Value:
    params = step.params
    padding, spacing, apart = params["padding"], params["lhs_dilation"], params["rhs_dilation"]
    strides = params["window_strides"]
    if len(shape) == 2:
        return _pointwise(step, x, weight, shape, kernel_shape, groups)
    if any(not _is_one(each) for each in spacing):
        reach = [(size - 1) * by for size, by in zip(kernel_shape[2:], apart, strict=True)]
        cut = [(by - low, by - high) for by, (low, high) in zip(reach, padding, strict=True)]
        plain = all(_is_one(each) for each in strides) and groups == 1
        if plain and all(is_known(count) and count >= 0 for pair in cut for count in pair):
            return _transposed(step, x, weight, cut)
        x, shape = _spread(step, x, shape, spacing)
    if any(not is_known(count) or count < 0 for pair in padding for count in pair):
        zero = step.number(0, x)
        x, padding = padded(step, x, zero, [(0, 0), (0, 0), *padding]), [(0, 0)] * len(padding)
    result: ir.Value = step.op(
        "Conv", x, weight, group=int(groups), strides=[int(each) for each in strides],
        dilations=[int(each) for each in apart], kernel_shape=kernel_shape[2:],
        pads=[int(low) for low, _ in padding] + [int(high) for _, high in padding],
    )  # fmt: skip
    return result


def _is_one(number: Any) -> bool:
    return is_known(number) and number == 1


def _transposed(step: Step, x: ir.Value, weight: ir.Value, cut: Sequence[Any]) -> ir.Value:
    """ConvTranspose, whose kernel is turned round and has its input channels first."""
    rank = len(cut) + 2
    turned = step.transposed(backwards(step, weight, range(2, rank)), [1, 0, *range(2, rank)])
    result: ir.Value = step.op(
        "ConvTranspose", x, turned, strides=[int(each) for each in step.params["lhs_dilation"]],
        dilations=[int(each) for each in step.params["rhs_dilation"]],
        pads=[int(low) for low, _ in cut] + [int(high) for _, high in cut],
    )  # fmt: skip
    return result


def _spread(step: Step, x: ir.Value, shape: list[Any], spacing: Sequence[Any]) -> tuple[ir.Value, list[Any]]:
    """Zeros between the elements."""
    shape = list(shape)
    for axis, by in enumerate(spacing, start=2):
        if not _is_one(by):
            x = spread(step, x, step.number(0, x), shape, axis, by - 1)
            shape[axis] = shape[axis] + (shape[axis] - 1) * (by - 1)
    return x, shape


def _pointwise(
    step: Step, x: ir.Value, weight: ir.Value, shape: list[Any], kernel_shape: list[int], groups: int
) -> ir.Value:
    """A convolution over nothing: an axis is added for it."""
    one = [1]
    found = step.op(
        "Conv", step.op("Unsqueeze", x, [2]), step.op("Unsqueeze", weight, [2]), group=int(groups), kernel_shape=one
    )
    result: ir.Value = step.op("Squeeze", found, [2])
    return result
