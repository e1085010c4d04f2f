"""Scan as a Loop that gathers its items, where Scan does not exist or scans only first axes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.adapters.parts.positions import counted
from entrepot.ir.opset.builder import OpBuilder


def scan_as_loop(op: OpBuilder, node: ir.Node) -> list[ir.Value]:
    """The Scan of version 9 or 11 under conversion; its body moves into the Loop's."""
    body: ir.Graph = op.attr("body")
    scanned = op.attr("num_scan_inputs")
    states = [value for value in node.inputs[: len(node.inputs) - scanned] if value is not None]
    items = [value for value in node.inputs[len(node.inputs) - scanned :] if value is not None]
    axes = _of_all(op, "scan_input_axes", scanned)
    size = op.Gather(op.Shape(items[0]), op.const(np.int64(axes[0])), axis=0)
    carried = states or [size]
    ranks = [op.rank(value) for value in body.outputs[len(states) :]]
    loop = _body(op, body, items, size, alone=not states)
    results = op.Loop(size, op.const(np.array(True)), *carried, body=loop, n_outputs=len(loop.outputs) - 1)
    results = [results] if isinstance(results, ir.Value) else list(results)
    axes, backwards = (_of_all(op, f"scan_output_{what}", len(ranks)) for what in ("axes", "directions"))
    placed = zip(results[len(carried) :], ranks, axes, backwards, strict=True)
    return [*results[: len(states)], *(_placed(op, *item, size) for item in placed)]


def _of_all(op: OpBuilder, name: str, count: int) -> list[int]:
    given: list[int] | None = op.attr(name)
    return given or [0] * count


def _placed(op: OpBuilder, x: ir.Value, rank: int | None, axis: int, back: int, size: ir.Value) -> ir.Value:
    """What a Loop stacked in front, in the order and along the axis that the Scan stacks it."""
    if back:
        last = op.Sub(size, op.const(np.int64(1)))
        x = op.Gather(x, op.Sub(last, counted(op, op.Reshape(size, op.ints(1)))), axis=0)
    if axis == 0:
        return x
    if rank is None:
        op.refuse("the rank of its result is unknown", hint="possible if its body states it")
    axis %= rank + 1
    result: ir.Value = op.Transpose(x, perm=[*range(1, axis + 1), 0, *range(axis + 1, rank + 1)])
    return result


def _body(op: OpBuilder, body: ir.Graph, items: Sequence[ir.Value], size: ir.Value, *, alone: bool) -> ir.Graph:
    """The body with a turn, a condition and, if it carries nothing, a number in front; items gathered by the turn."""
    inside = dataclasses.replace(op, emitted=[])
    turn, going = (
        ir.Value(name=op.fresh_name(name), type=ir.TensorType(dtype), shape=ir.Shape([]))
        for name, dtype in (("turn", ir.DataType.INT64), ("going", ir.DataType.BOOL))
    )
    formal = list(body.inputs)
    body.inputs.clear()
    states = formal[: len(formal) - len(items)]
    if alone:
        states = [ir.Value(name=op.fresh_name("carried"), type=ir.TensorType(ir.DataType.INT64), shape=ir.Shape([]))]
    axes, backwards = (_of_all(op, f"scan_input_{what}", len(items)) for what in ("axes", "directions"))
    last = inside.Sub(inside.Sub(size, inside.const(np.int64(1))), turn) if any(backwards) else turn
    results = list(body.outputs)
    for value, item, axis, back in zip(formal[len(formal) - len(items) :], items, axes, backwards, strict=True):
        taken = inside.Gather(item, last if back else turn, axis=axis)
        taken.type, taken.shape = value.type or taken.type, value.shape
        value.replace_all_uses_with(taken)
        results = [taken if result is value else result for result in results]
    nodes, weights = list(body), list(body.initializers.values())
    body.outputs.clear()
    body.remove(nodes)
    body.initializers.clear()
    before, inside.emitted[:] = list(inside.emitted), []
    outputs = [inside.Identity(value) for value in (going, *(states if alone else ()), *results)]
    return ir.Graph(
        [turn, going, *states],
        outputs,
        nodes=[*before, *nodes, *inside.emitted],
        initializers=weights,
        name=op.fresh_name("body"),
    )
