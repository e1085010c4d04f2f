"""Resizing and sampling of images."""

from __future__ import annotations

import onnx_ir as ir

from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, adapter, extended, unchanged

extended("DepthToSpace", 1, 11)
extended("Resize", 13, 18)
extended("Resize", 18, 19)
extended("SpaceToDepth", 13, 28)
unchanged("DepthToSpace", 11, 13, 28)
unchanged("GridSample", 20, 22)
unchanged("NonMaxSuppression", 10, 11)
unchanged("SpaceToDepth", 1, 13)


@adapter("GridSample", 16, 20)
def grid_sample_up(op: OpBuilder, _node: ir.Node) -> Replacement:
    """The modes were renamed."""
    mode = op.attr("mode", "bilinear")
    return op.set(mode={"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode))


@adapter("GridSample", 20, 16)
def grid_sample_down(op: OpBuilder, _node: ir.Node) -> Replacement:
    """The modes were renamed; volumes are new."""
    if op.need_rank(op.x()) != 4:
        op.refuse("only 4-D inputs are expressible before version 20")
    mode = op.attr("mode", "linear")
    return op.set(mode={"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode))
