"""Convolutions, and what belongs to them.

| operator | version | change |
|---|---|---|
| Col2Im | 18 | introduced |
| DeformConv | 19 | introduced |

Others changed their element types only. ConvTranspose 11 reworded how SAME padding is split; runtimes never read it
otherwise, so nothing changes.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.bodies import expanded
from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, decomposition, unchanged

unchanged("Conv", 1, 11, 22)
unchanged("ConvTranspose", 1, 11, 22)
unchanged("DeformConv", 19, 22)
expanded("CausalConvWithState", 27)

Positions: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]


@decomposition("Col2Im", 18)
def blocks_summed(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Gather for each pixel the elements of all blocks that cover it, and add them up."""
    x, image, block = op.x(), op.need_known(1, "image_shape"), op.need_known(2, "block_shape")
    covering, elements = _covering(op, image.tolist(), block.tolist())
    _, rows, _ = op.shape(x) or (None, None, None)
    channels = -1 if rows is None else rows // int(np.prod(block))  # -1 stands for nothing in an empty batch
    padded = op.Pad(op.Reshape(x, op.ints(0, channels, elements)), op.ints(0, 0, 0, 0, 0, 1))
    taken = op.Gather(padded, op.const(covering), axis=2)
    return op.Reshape(op.ReduceSum(taken, op.ints(3), keepdims=0), op.ints(0, channels, *image.tolist()))


def _covering(op: OpBuilder, image: list[int], block: list[int]) -> tuple[Positions, int]:
    """A row per pixel with the elements that cover it, filled up with the number of all, which comes along."""
    axes = len(image)
    strides, dilations = op.attr("strides", [1] * axes), op.attr("dilations", [1] * axes)
    pads = op.attr("pads", [0] * 2 * axes)
    room = [size + pads[axis] + pads[axes + axis] for axis, size in enumerate(image)]
    free = [r - d * (b - 1) - 1 for r, d, b in zip(room, dilations, block, strict=True)]
    counts = [step // stride + 1 for step, stride in zip(free, strides, strict=True)]
    elements = int(np.prod(block) * np.prod(counts))
    op.need_small(elements)
    grid = np.indices([*block, *counts])
    inside, pixel = np.ones(grid.shape[1:], bool), np.zeros(grid.shape[1:], np.int64)
    for axis, size in enumerate(image):
        at = grid[axes + axis] * strides[axis] - pads[axis] + grid[axis] * dilations[axis]
        inside &= (at >= 0) & (at < size)
        pixel = pixel * size + at
    sources, targets = np.flatnonzero(inside), pixel[inside]
    order = np.argsort(targets, kind="stable")
    sources, targets = sources[order], targets[order]
    number = np.arange(len(targets)) - np.searchsorted(targets, targets)  # position among the elements of its pixel
    width = int(number.max(initial=0)) + 1
    op.need_small(int(np.prod(image)) * width)
    rows = np.full((int(np.prod(image)), width), elements, np.int64)
    rows[targets, number] = sources
    return rows, elements


@decomposition("DeformConv", 19)
def sampled_then_multiplied(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Sample the image where each element of the kernel looks, then multiply by the weights."""
    x, weight = op.x(0), op.x(1)
    (channels, height, width), (outputs, depth, *kernel), spots = _fixed(op)
    parts, group = op.attr("offset_group", 1), op.attr("group", 1)
    area, count = int(np.prod(kernel)), int(np.prod(spots))
    image = op.Reshape(x, op.ints(-1, channels // parts, height, width))
    seen = op.GridSample(image, _looked_at(op, (height, width), kernel, spots, parts), mode="bilinear")
    if op.input(4) is not None:
        seen = op.Mul(seen, op.Reshape(op.x(4), op.ints(-1, 1, area * spots[0], spots[1])))
    columns = op.Reshape(seen, op.ints(-1, group, depth * area, count))
    result = op.MatMul(op.Reshape(weight, op.ints(group, outputs // group, depth * area)), columns)
    result = op.Reshape(result, op.ints(-1, outputs, *spots))
    return result if op.input(3) is None else op.Add(result, op.Reshape(op.x(3), op.ints(1, outputs, 1, 1)))


def _fixed(op: OpBuilder) -> tuple[list[int], list[int], list[int]]:
    """Sizes of the image, the weights and the result, where no sample would be left unknown."""
    shapes, starts = [op.shape(op.x(index)) for index in range(3)], (1, 0, 2)
    image, weight, offset = (s if s is None else s[start:] for s, start in zip(shapes, starts, strict=True))
    if image is None or weight is None or offset is None or None in [*image, *weight, *offset]:
        op.refuse("its sizes are not fixed", hint="possible with fixed sizes of all but the batch")
    if len(image) != 3:
        op.refuse("only images are expressible there, 4-D inputs")
    if 0 in [*image, *offset]:
        op.refuse("an empty image is not expressible there")
    return [d or 0 for d in image], [d or 0 for d in weight], [d or 0 for d in offset]


def _looked_at(op: OpBuilder, image: tuple[int, int], kernel: list[int], spots: list[int], parts: int) -> ir.Value:
    """The grid to sample at: for each element of the kernel and each spot of the result, from -1 to 1, x before y."""
    area, (rows, columns) = int(np.prod(kernel)), spots
    offset, dtype = op.x(2), op.need_dtype(op.x(2))
    if dtype in (ir.DataType.FLOAT16, ir.DataType.BFLOAT16):  # a position takes more than 11 bits
        dtype = ir.DataType.FLOAT
        offset = op.Cast(offset, to=int(dtype))
    offset = op.Reshape(offset, op.ints(-1, area, 2, rows, columns))
    offset = op.Reshape(op.Transpose(offset, perm=[0, 1, 3, 4, 2]), op.ints(-1, area * rows, columns, 2))
    strides, dilations, pads = op.attr("strides", [1, 1]), op.attr("dilations", [1, 1]), op.attr("pads", [0] * 4)
    grid = np.indices([*kernel, rows, columns]).reshape(4, area * rows, columns)
    start = [grid[2 + axis] * strides[axis] - pads[axis] + grid[axis] * dilations[axis] for axis in (0, 1)]
    at = op.Add(offset, op.const(np.stack(start, -1), dtype=dtype))
    scaled = op.Div(
        op.Add(op.Mul(at, op.const(2, dtype=dtype)), op.const(1, dtype=dtype)), op.const(image, dtype=dtype)
    )
    return op.Gather(op.Sub(scaled, op.const(1, dtype=dtype)), op.ints(1, 0), axis=3)
