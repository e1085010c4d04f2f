"""TensorScatter: writing into a cache of keys and values."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, decomposition


@decomposition("TensorScatter", 24)
def tensor_scatter(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Scatter each update at its batch's index plus its own place, wrapping round where the cache is circular."""
    cache, update, start = op.x(0), op.x(1), op.input(2)
    rank = op.need_rank(cache)
    axis = op.attr("axis", -2) % rank
    length = op.Gather(op.Shape(update), op.const(np.int64(axis)))
    along = [1] * rank
    along[axis] = -1
    place = op.Reshape(op.Range(op.const(np.int64(0)), length, op.const(np.int64(1))), op.ints(*along))
    if start is not None:
        place = op.Add(place, op.Reshape(start, op.ints(-1, *[1] * (rank - 1))))
    if op.attr("mode", "linear") == "circular":
        place = op.Mod(place, op.Gather(op.Shape(cache), op.const(np.int64(axis))))
    return op.ScatterElements(cache, op.Expand(place, op.Shape(update)), update, axis=axis)
