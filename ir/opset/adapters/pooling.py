"""Pooling.

| operator | version | change |
|---|---|---|
| AveragePool | 7 | ``count_include_pad`` |
| | 10 | ``ceil_mode`` |
| | 19 | ``dilations`` |
| MaxPool | 8 | output ``Indices``, ``storage_order`` |
| | 10 | ``ceil_mode``, ``dilations`` |
| LpPool | 2 | ``p`` is an integer |
| | 18 | ``ceil_mode``, ``dilations`` |
"""

from __future__ import annotations

import onnx_ir as ir

from entrepot.ir.opset.adapters.parts.pooling_windows import pooled_axes, rounds_up, windows_side_by_side
from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, adapter, added, extended, unchanged

for _name in ("GlobalAveragePool", "GlobalMaxPool", "MaxRoiPool"):
    unchanged(_name, 1, 22)
unchanged("GlobalLpPool", 2, 22)
unchanged("AveragePool", 10, 11)
unchanged("MaxPool", 10, 11, 12)
unchanged("LpPool", 2, 11)
unchanged("LpPool", 18, 22)
unchanged("MaxUnpool", 9, 11, 22)
extended("MaxPool", 1, 8)


def older_windows(op: OpBuilder, node: ir.Node) -> Replacement:
    """Write the windows that ``ceil_mode`` adds as padding at the end, which no value counts, or spell all out."""
    if any(dilation != 1 for dilation in op.attr("dilations", [])):
        return windows_side_by_side(op, node)
    op.drop("dilations")
    return ceil_mode_as_padding(op, node)


def ceil_mode_as_padding(op: OpBuilder, node: ir.Node) -> Replacement:
    """Write the windows that ``ceil_mode`` adds as padding at the end, unless padding is counted."""
    if rounds_up(op):
        if op.attr("count_include_pad", 0):
            return windows_side_by_side(op, node)
        op.set(pads=_ceil_pads(op))
    return op.drop("ceil_mode")


def _ceil_pads(op: OpBuilder) -> list[int]:
    axes = pooled_axes(op)
    reached = [(axis.windows(ceil=True) - 1) * axis.stride + axis.extent for axis in axes]
    ends = [max(axis.after, end - axis.size - axis.before) for axis, end in zip(axes, reached, strict=True)]
    return [axis.before for axis in axes] + ends


@adapter("AveragePool", 19, 22)
@adapter("MaxPool", 12, 22)
def windows_as_declared(op: OpBuilder, node: ir.Node) -> Replacement:
    """Keep, unless the file counts last windows that start in the padding, which version 22 leaves out for good."""
    declared, shape = node.outputs[0].shape, op.shape(op.x())
    if not op.attr("ceil_mode", 0) or declared is None or shape is None or None in shape[2:]:
        return None
    for dim, axis in zip(declared[2:], pooled_axes(op), strict=True):
        if isinstance(dim, int) and dim == axis.windows(ceil=True) + 1:
            op.refuse(
                f"one of the {dim} windows that its output declares starts in the padding at the end, and version 22 "
                "leaves such windows out",
                hint="possible without the declared shapes (value_info), as onnxruntime never computed such windows",
            )
    return None


@adapter("AveragePool", 22, 19)
@adapter("MaxPool", 22, 12)
def no_window_in_the_padding(op: OpBuilder, node: ir.Node) -> Replacement:
    """Version 22 leaves out a last window that starts in the padding at the end; write such sizes out."""
    kernel = op.attr("kernel_shape")
    axes = len(kernel)
    strides, ends = op.attr("strides", [1] * axes), op.attr("pads", [0] * 2 * axes)[axes:]
    dilations = op.attr("dilations", [1] * axes)
    possible = any(
        end > dilation * (window - 1) + 1 - stride
        for window, stride, end, dilation in zip(kernel, strides, ends, dilations, strict=True)
    )
    if not op.attr("ceil_mode", 0) or not possible:
        return None
    return ceil_mode_as_padding(op, node)


def padded_average(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Pad first, so that the padding counts."""
    pads = op.attr("pads", [])
    if op.attr("auto_pad", "NOTSET") != "NOTSET":
        op.refuse("auto_pad combined with count_include_pad is not expressible before version 7")
    half = len(pads) // 2
    if any(pads):
        op.inputs(op.Pad(op.x(), pads=[0, 0, *pads[:half], 0, 0, *pads[half:]]))
    return op.drop("pads", "count_include_pad")


added("AveragePool", 1, 7, count_include_pad=0, otherwise=padded_average)
added("AveragePool", 7, 10, ceil_mode=0, otherwise=ceil_mode_as_padding)
added("AveragePool", 11, 19, dilations=[1], otherwise=windows_side_by_side)
added("MaxPool", 8, 10, ceil_mode=0, dilations=[1], otherwise=older_windows)
added("LpPool", 11, 18, ceil_mode=0, dilations=[1], otherwise=older_windows)


@adapter("MaxPool", 8, 1)
def max_without_indices(op: OpBuilder, node: ir.Node) -> Replacement:
    """Keep, unless the indices are asked for."""
    if op.used(1):
        op.refuse("its output Indices is not expressible before version 8")
    node.resize_outputs(1)
    return op.drop("storage_order")


@adapter("LpPool", 1, 2)
@adapter("GlobalLpPool", 1, 2)
def integer_norm(op: OpBuilder, node: ir.Node) -> Replacement:
    """``p`` became an integer; both defaults are 2."""
    p = op.attr("p", 2.0)
    if p != int(p):
        op.refuse(f"p={p} has no newer form: p is an integer there")
    if node.op_type == "LpPool" and "kernel_shape" not in node.attributes:
        op.refuse("kernel_shape is missing")
    return op.set(p=int(p))


@adapter("LpPool", 2, 1)
@adapter("GlobalLpPool", 2, 1)
def float_norm(op: OpBuilder, _node: ir.Node) -> Replacement:
    """``p`` was a float."""
    p = op.attr("p", 2)
    op.drop("p")
    op.node.attributes.add(ir.AttrFloat32("p", float(p)))
