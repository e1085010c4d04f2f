"""Sampling, cropping and rearranging images; Resize and GridSample have their own files.

| operator | version | change |
|---|---|---|
| DepthToSpace | 11 | ``mode`` |
| SpaceToDepth | 28 | ``mode`` |
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.adapters.parts.axes import unsqueezed
from entrepot.ir.opset.adapters.parts.computed_resize import SHORT
from entrepot.ir.opset.adapters.parts.positions import counted, sizes
from entrepot.ir.opset.bodies import expanded
from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, added, decomposition, impossible, unchanged

unchanged("DepthToSpace", 11, 13, 28)
unchanged("SpaceToDepth", 1, 13)
unchanged("NonMaxSuppression", 10, 11)
expanded("CenterCropPad", 18)
impossible("NonMaxSuppression", 10, 0, "no operator chose boxes before opset 10")
impossible("ImageDecoder", 20, 0, "no operator decoded images before opset 20")


def _channels(op: OpBuilder) -> int:
    shape = op.shape(op.x())
    if shape is None or shape[1] is None:
        op.refuse("the number of channels is not fixed", hint="possible with fixed channels")
    return shape[1]


def depth_to_space_columns_first(op: OpBuilder, _node: ir.Node) -> Replacement:
    """CRD: the blocks of a channel lie together, and are moved to where the older version looks for them."""
    blocks = op.attr("blocksize") ** 2
    order = np.arange(_channels(op)).reshape(-1, blocks).T.ravel()
    return op.again(op.Gather(op.x(), op.const(order), axis=1), drop=("mode",))


def space_to_depth_columns_first(op: OpBuilder, _node: ir.Node) -> Replacement:
    """CRD: the blocks of a channel are brought together."""
    channels, blocks = _channels(op), op.attr("blocksize") ** 2
    order = np.arange(channels * blocks).reshape(blocks, channels).T.ravel()
    return op.Gather(op.again(op.x(), drop=("mode",)), op.const(order), axis=1)


added("DepthToSpace", 1, 11, mode="DCR", otherwise=depth_to_space_columns_first)
added("SpaceToDepth", 13, 28, mode="DCR", otherwise=space_to_depth_columns_first)


@decomposition("AffineGrid", 20)
def affine_grid(op: OpBuilder, _node: ir.Node) -> Replacement:
    """The place of every element, x first and a one last, times the matrix of each image.

    Not the schema's body: that has branches of different ranks, which older versions of If do not take.
    """
    theta, size = op.x(0), op.x(1)
    shape, dtype = op.shape(size), op.need_dtype(theta)
    if shape is None or shape[0] is None:
        op.refuse("the number of axes is unknown", hint="possible if the file states the length of size")
    axes, short = shape[0] - 2, dtype in SHORT
    theta = op.Cast(theta, to=int(ir.DataType.FLOAT)) if short else theta
    one, extent = op.const(1, like=theta), sizes(op, size, 2)
    ones = op.Expand(one, extent)
    columns = []
    for axis in reversed(range(axes)):
        along = unsqueezed(op, _places(op, sizes(op, size, axis + 2, axis + 3), one), list(range(1, axes - axis)))
        columns.append(op.Mul(along, ones))
    columns = [unsqueezed(op, column, [axes]) for column in (*columns, ones)]
    flat = op.Reshape(op.Concat(*columns, axis=axes), op.ints(-1, axes + 1))
    grid = op.MatMul(flat, op.Transpose(theta, perm=[0, 2, 1]))
    grid = op.Reshape(grid, op.Concat(sizes(op, size, 0, 1), extent, op.ints(axes), axis=0))
    return op.Cast(grid, to=int(dtype)) if short else grid


def _places(op: OpBuilder, count: ir.Value, one: ir.Value) -> ir.Value:
    """The elements of an axis between -1 and 1: from corner to corner, or from middle to middle of the outer ones."""
    kind, two = int(op.need_dtype(one)), op.const(2, like=one)
    at, number = op.Cast(counted(op, count), to=kind), op.Cast(count, to=kind)
    if op.attr("align_corners", 0):
        places: ir.Value = op.Sub(op.Mul(at, op.Div(two, op.Max(op.Sub(number, one), one))), one)
    else:
        step = op.Div(two, number)
        places = op.Add(op.Sub(op.Div(step, two), one), op.Mul(at, step))
    return places
