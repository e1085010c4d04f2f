"""Products of matrices: ``dot_general`` with any dimension numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.jax.step import Step, kind_of
from entrepot.exporters.jax.table import rule

_SMALL = ("int8", "int16", "uint8", "uint16", "bool", "int4", "uint4")


@rule("dot_general")
def dot_general(step: Step, left: ir.Value, right: ir.Value) -> ir.Value:
    """MatMul of the operands, their axes in order: those in common, those that stay, those that are summed over."""
    left, right = _of_one_type(step, left), _of_one_type(step, right)
    found = product(step, left, right, step.params["dimension_numbers"], step.ins[0].shape, step.ins[1].shape)
    return step.build.cast(found, kind_of(step.dtype))


def _of_one_type(step: Step, x: ir.Value) -> ir.Value:
    """An operand in the type that products are summed in."""
    if step.dtype.name in _SMALL or step.dtype == np.bool_:
        return step.build.cast(x, np.int32)
    return step.build.cast(x, kind_of(step.dtype))


def product(
    step: Step, left: ir.Value, right: ir.Value, numbers: Any, shape: Sequence[Any], other: Sequence[Any]
) -> ir.Value:
    """The product of two values of the given shapes."""
    (summed, summed_other), (common, common_other) = numbers
    rows = [axis for axis in range(len(shape)) if axis not in (*summed, *common)]
    columns = [axis for axis in range(len(other)) if axis not in (*summed_other, *common_other)]
    batch = [shape[axis] for axis in common]
    row_sizes, column_sizes = [shape[axis] for axis in rows], [other[axis] for axis in columns]
    depth = [shape[axis] for axis in summed]
    first = step.transposed(left, [*common, *rows, *summed])
    second = step.transposed(right, [*common_other, *summed_other, *columns])
    plain_rows = not common or len(rows) == 1  # MatMul takes axes before a matrix for those of a stack
    plain_columns = len(columns) == 1 or not (common or columns)
    if len(depth) != 1 or not plain_rows:
        kept = row_sizes if plain_rows else [math.prod(row_sizes)]
        first = step.shaped(first, [*batch, *kept, math.prod(depth)])
    if len(depth) != 1 or not plain_columns:
        kept = column_sizes if plain_columns else [math.prod(column_sizes)]
        second = step.shaped(second, [*batch, math.prod(depth), *kept])
    found = step.op("MatMul", first, second)
    return found if plain_rows and plain_columns else step.shaped(found, [*batch, *row_sizes, *column_sizes])
