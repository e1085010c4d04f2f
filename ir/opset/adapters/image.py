"""Sampling, cropping and rearranging images; Resize and GridSample have their own files.

| operator | version | change |
|---|---|---|
| DepthToSpace | 11 | ``mode`` |
| SpaceToDepth | 28 | ``mode`` |
"""

from __future__ import annotations

import onnx
import onnx_ir as ir

from entrepot.ir.opset.bodies import expand, expanded
from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, added, decomposition, impossible, unchanged

unchanged("DepthToSpace", 11, 13, 28)
unchanged("SpaceToDepth", 1, 13)
unchanged("NonMaxSuppression", 10, 11)
expanded("CenterCropPad", 18)
impossible("NonMaxSuppression", 10, 0, "no operator chose boxes before opset 10")
impossible("ImageDecoder", 20, 0, "no operator decoded images before opset 20")


def _image_shape(op: OpBuilder) -> list[int]:
    shape = op.shape(op.x())
    if shape is None or None in shape[1:]:
        op.refuse("the image size is not fixed", hint="possible with fixed channels, height and width")
    return [dim or 0 for dim in shape[1:]]


def depth_to_space_columns_first(op: OpBuilder, _node: ir.Node) -> Replacement:
    """CRD: channels vary slowest among the blocks."""
    size = op.attr("blocksize")
    channels, height, width = _image_shape(op)
    depth = channels // (size * size)
    blocks = op.Reshape(op.x(), op.ints(-1, depth, size, size, height, width))
    placed = op.Transpose(blocks, perm=[0, 1, 4, 2, 5, 3])
    return op.Reshape(placed, op.ints(-1, depth, height * size, width * size))


def space_to_depth_columns_first(op: OpBuilder, _node: ir.Node) -> Replacement:
    """CRD: channels vary slowest among the blocks."""
    size = op.attr("blocksize")
    channels, height, width = _image_shape(op)
    blocks = op.Reshape(op.x(), op.ints(-1, channels, height // size, size, width // size, size))
    placed = op.Transpose(blocks, perm=[0, 1, 3, 5, 2, 4])
    return op.Reshape(placed, op.ints(-1, channels * size * size, height // size, width // size))


added("DepthToSpace", 1, 11, mode="DCR", otherwise=depth_to_space_columns_first)
added("SpaceToDepth", 13, 28, mode="DCR", otherwise=space_to_depth_columns_first)


@decomposition("AffineGrid", 20)
def affine_grid(op: OpBuilder, node: ir.Node) -> Replacement:
    """Write the function body, which squeezes the batch away where its size is 1, with the axis it means."""
    return expand(op, node, mend=_name_squeezed_axis)


def _name_squeezed_axis(body: onnx.FunctionProto) -> None:
    inner = [item for node in body.node for attribute in node.attribute for item in attribute.g.node]
    for node in inner:
        if node.op_type == "Squeeze" and len(node.input) == 1:
            node.input.append("one_1d")
