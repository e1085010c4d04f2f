"""A Loop that an adapter writes, in the form that all versions accept: it has a condition and carries something."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.builder import OpBuilder

Body: TypeAlias = Callable[..., Sequence[ir.Value]]
"""Given a builder that writes inside, the number of the turn and what is carried; gives what is carried on, then what
each turn adds to a stack. Where the Loop asks for it, whether to go on comes first."""


def loop(
    op: OpBuilder,
    turns: ir.Value,
    start: Sequence[ir.Value],
    write: Body,
    *,
    shapes: Sequence[ir.Shape | None] = (),
    asks: bool = False,
) -> list[ir.Value]:
    """A Loop with a given number of turns.

    Args:
        op: The place.
        turns: An int64 scalar.
        start: What is carried, at first; one value at least.
        write: The body.
        shapes: What is known of the shapes of what is carried, where they stay the same.
        asks: The body says first whether to go on; otherwise all turns are taken.

    Returns:
        What was carried in the end, then what was stacked, along a new first axis.
    """
    inside = dataclasses.replace(op, emitted=[])
    known = [*shapes, *[None] * (len(start) - len(shapes))]
    turn, going = _formal(op, "turn", ir.DataType.INT64, ()), _formal(op, "going", ir.DataType.BOOL, ())
    carried = [_formal(op, "carried", op.need_dtype(x), shape) for x, shape in zip(start, known, strict=True)]
    results = [
        inside.Identity(value) if _is_around(value, inside) else value for value in write(inside, turn, *carried)
    ]
    if not asks:
        results.insert(0, inside.Identity(going))
    body = ir.Graph([turn, going, *carried], results, nodes=inside.emitted, name=op.fresh_name("body"))
    made = op.emit("Loop", [turns, op.const(np.array(True)), *start], {"body": body}, len(results) - 1)
    outputs = [made] if isinstance(made, ir.Value) else list(made)
    for output, x, shape in zip(outputs, start, known, strict=False):
        output.type, output.shape = ir.TensorType(op.need_dtype(x)), _copy(shape)
    return outputs


def _is_around(value: ir.Value, inside: OpBuilder) -> bool:
    """Whether a value comes from outside the body: a graph has to produce its outputs itself."""
    return value.producer() not in inside.emitted


def _formal(op: OpBuilder, what: str, dtype: ir.DataType, shape: Sequence[int] | ir.Shape | None) -> ir.Value:
    return ir.Value(name=op.fresh_name(what), type=ir.TensorType(dtype), shape=_copy(shape))


def _copy(shape: Sequence[int] | ir.Shape | None) -> ir.Shape | None:
    return None if shape is None else ir.Shape(list(shape))
