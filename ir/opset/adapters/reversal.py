"""ReverseSequence: before opset 10 a Gather of steps in another order."""

from __future__ import annotations

import onnx_ir as ir

from entrepot.ir.opset.adapters.parts.positions import counted, sizes
from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, decomposition, unchanged

unchanged("ReverseSequence", 10, 28)


@decomposition("ReverseSequence", 10)
def reverse_by_position(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Gather step ``length - 1 - t`` for each step ``t`` below the length of its sequence."""
    x, lengths, time = op.x(0), op.x(1), op.attr("time_axis", 0)
    if (time, op.attr("batch_axis", 1)) not in ((0, 1), (1, 0)):
        op.refuse(f"time_axis={time} and batch_axis={op.attr('batch_axis', 1)} have to be 0 and 1, or 1 and 0")
    shape = op.Shape(x)
    step, sequence = (counted(op, sizes(op, shape, axis, axis + 1)) for axis in (time, 1 - time))
    if time == 0:
        step = op.Unsqueeze(step, axes=[1])
    else:
        lengths, sequence = (op.Unsqueeze(value, axes=[1]) for value in (lengths, sequence))
    inside = op.Cast(op.Less(step, lengths), to=int(ir.DataType.INT64))
    mirrored = op.Sub(op.Sub(lengths, op.ints(1)), op.Add(step, step))
    taken = op.Add(step, op.Mul(inside, mirrored))
    first, second = (taken, sequence) if time == 0 else (sequence, taken)
    position = op.Add(op.Mul(first, sizes(op, shape, 1, 2)), second)
    flat = op.Reshape(x, op.Concat(op.ints(-1), sizes(op, shape, 2), axis=0))  # a product of 0 would mean "as it was"
    return op.Gather(flat, position, axis=0)
