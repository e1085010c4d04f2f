"""Normalisation layers."""

from __future__ import annotations

import onnx_ir as ir

from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, adapter, unchanged

unchanged("BatchNormalization", 14, 15)
unchanged("InstanceNormalization", 6, 22)
unchanged("LRN", 1, 13)
unchanged("LpNormalization", 1, 22)
unchanged("MeanVarianceNormalization", 9, 13)


@adapter("GroupNormalization", 18, 21)
def group_normalization_up(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Repeat each group's scale and bias for its channels."""
    x, groups = op.x(), op.attr("num_groups")
    shape = op.shape(x)
    channels = None if shape is None else shape[1]
    if channels is not None:
        target = op.ints(groups, channels // groups)
    else:
        target = op.Concat(op.ints(groups), op.Div(op.Shape(x, start=1, end=2), op.ints(groups)), axis=0)
    scale, bias = (op.Reshape(op.Expand(op.Unsqueeze(op.x(i), op.ints(1)), target), op.ints(-1)) for i in (1, 2))
    return op.inputs(x, scale, bias)
