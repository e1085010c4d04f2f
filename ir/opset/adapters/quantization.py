"""Quantisation.

| QuantizeLinear, DequantizeLinear | change |
|---|---|
| 13 | ``axis``: a scale per slice |
| 19 | float8, ``saturate`` |
| 21 | ``block_size``, ``output_dtype`` (quantise), 4-bit types |
| 23 | ``precision`` (quantise), ``output_dtype`` (dequantise) |
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.bodies import expanded
from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, adapter, added, decomposition, extended, unchanged

for _name in ("QuantizeLinear", "DequantizeLinear"):
    unchanged(_name, 23, 24, 25, 28)
    extended(_name, 10, 13)
unchanged("DequantizeLinear", 13, 19)
unchanged("QLinearMatMul", 10, 21)
expanded("DynamicQuantizeLinear", 11)


SIXTEEN_BITS = (ir.DataType.INT16, ir.DataType.UINT16)


def _narrow(dtype: ir.DataType) -> bool:
    return dtype.name.startswith("FLOAT8") or dtype.bitwidth < 8


def _aligned(op: OpBuilder, x: ir.Value, parameter: ir.Value) -> ir.Value:
    """A scale or zero point in a shape that broadcasts against ``x``."""
    if op.need_rank(parameter) == 0 or op.shape(parameter) == [1]:
        return parameter
    axis, rank = op.attr("axis", 1), op.need_rank(x)
    block = op.attr("block_size", 0)
    if block:
        return _repeated(op, x, parameter, axis % rank, block)
    shape = [1] * rank
    shape[axis % rank] = -1
    return op.Reshape(parameter, op.ints(*shape))


def _repeated(op: OpBuilder, x: ir.Value, parameter: ir.Value, axis: int, block: int) -> ir.Value:
    shape, own = op.shape(x), op.shape(parameter)
    size = None if shape is None else shape[axis]
    if size is None or own is None or own[axis] is None:
        op.refuse("blocks need a fixed size of their axis", hint="possible with a fixed size")
    index = np.minimum(np.arange(size) // block, (own[axis] or 1) - 1)
    return op.Gather(parameter, op.const(index), axis=axis)


def quantise(op: OpBuilder, _node: ir.Node) -> Replacement:
    """saturate(round(x / scale) + zero point), divided in the scale's type or that of ``precision``.

    The rest is done in float: not all 16-bit floats hold the bounds of the 16-bit integers.
    """
    x, scale, zero = op.x(0), op.x(1), op.input(2)
    dtype, wide = _output_type(op, zero), ir.DataType.FLOAT
    if _narrow(dtype):
        op.refuse(f"{dtype.name.lower()} is not known there")
    divided = ir.DataType(op.attr("precision", 0) or _division_type(op, scale))
    quotient = op.Div(_cast(op, x, divided), _aligned(op, x, _cast(op, scale, divided)))
    value = _round(op, _cast(op, quotient, wide, dtype=divided), wide)
    if zero is not None:
        value = op.Add(value, _aligned(op, x, op.Cast(zero, to=int(wide))))
    low, high = op.const(dtype.min, dtype=wide), op.const(dtype.max, dtype=wide)
    return op.Cast(op.Min(op.Max(value, low), high), to=int(dtype))


def _division_type(op: OpBuilder, scale: ir.Value) -> ir.DataType:
    """The scale's; integers are divided as floats, since the quotient is rounded to nearest, not truncated."""
    dtype = op.need_dtype(scale)
    return dtype if dtype in (ir.DataType.FLOAT16, ir.DataType.BFLOAT16) else ir.DataType.FLOAT


def _cast(op: OpBuilder, value: ir.Value, to: ir.DataType, *, dtype: ir.DataType | None = None) -> ir.Value:
    own = dtype or op.need_dtype(value)
    return value if own == to else op.Cast(value, to=int(to))


def _output_type(op: OpBuilder, zero: ir.Value | None) -> ir.DataType:
    if zero is not None:
        return op.need_dtype(zero)
    return ir.DataType(op.attr("output_dtype", 0) or int(ir.DataType.UINT8))


def _round(op: OpBuilder, x: ir.Value, dtype: ir.DataType) -> ir.Value:
    if op.version >= 11:
        return op.Round(x)
    half = op.const(0.5, dtype=dtype)
    floor = op.Floor(x)
    rest, halved = op.Sub(x, floor), op.Mul(floor, half)
    odd = op.Greater(op.Sub(halved, op.Floor(halved)), op.const(0, dtype=dtype))
    up = op.Or(op.Greater(rest, half), op.And(op.Not(op.Less(rest, half)), odd))
    return op.Add(floor, op.Cast(up, to=int(dtype)))


def dequantise(op: OpBuilder, _node: ir.Node) -> Replacement:
    """(x - zero point) * scale, in float: a 16-bit float does not hold every 16-bit integer."""
    x, scale, zero = op.x(0), op.x(1), op.input(2)
    wide = ir.DataType.FLOAT
    target = ir.DataType(op.attr("output_dtype", 0) or op.need_dtype(scale))
    value = op.Cast(_in_bytes(op, x), to=int(wide))
    if zero is not None:
        value = op.Sub(value, _aligned(op, x, op.Cast(_in_bytes(op, zero), to=int(wide))))
    result: ir.Value = op.Mul(value, _aligned(op, x, _cast(op, scale, wide)))
    return _cast(op, result, target, dtype=wide)


_WIDER = {ir.DataType.INT4: ir.DataType.INT8, ir.DataType.UINT4: ir.DataType.UINT8}


def _in_bytes(op: OpBuilder, x: ir.Value) -> ir.Value:
    """Numbers that have a byte each, as weights of four bits then get; what is computed cannot."""
    dtype = op.need_dtype(x)
    if not _narrow(dtype):
        return x
    stored = x.const_value if x.is_initializer() and not x.is_graph_input() else None
    wider = _WIDER.get(dtype)
    if stored is None or wider is None:
        op.refuse(f"{dtype.name.lower()} is not known there")
    shape = ir.Shape(stored.shape.numpy())
    return op.initializer(
        ir.LazyTensor(lambda: ir.tensor(stored.numpy().astype(wider.numpy()), dtype=wider), dtype=wider, shape=shape)
    )


def _per_tensor(op: OpBuilder) -> bool:
    return op.need_rank(op.x(1)) == 0


@adapter("QuantizeLinear", 13, 10)
def quantise_whole(op: OpBuilder, node: ir.Node) -> Replacement:
    """One scale for the whole tensor stays; several are spelled out."""
    return op.drop("axis") if _per_tensor(op) else quantise(op, node)


@adapter("DequantizeLinear", 13, 10)
def dequantise_whole(op: OpBuilder, node: ir.Node) -> Replacement:
    """One scale for the whole tensor stays; several are spelled out."""
    return op.drop("axis") if _per_tensor(op) else dequantise(op, node)


@adapter("QuantizeLinear", 13, 19)
def integers_as_floats(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Versions 19 to 21 want a scale of the input's own type: integers become floats first, as version 13 computed."""
    if op.dtype(op.x()) == ir.DataType.INT32:
        op.inputs(op.Cast(op.x(), to=int(ir.DataType.FLOAT)), op.x(1), op.input(2))


@adapter("QuantizeLinear", 23, 21)
def quantise_of_one_type(op: OpBuilder, node: ir.Node) -> Replacement:
    """Drop a ``precision`` equal to the scale's type, which has to be the input's; spell the others out."""
    scale = op.dtype(op.x(1))
    if op.attr("precision", 0) in (0, scale) and scale in (None, op.dtype(op.x())):
        return op.drop("precision")
    return quantise(op, node)


def without_float8(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Drop ``saturate`` where no float8 is involved."""
    if not op.has_default("saturate", 1) and _narrow(op.need_dtype(op.node.outputs[0])):
        op.refuse("float8 without saturation is not expressible there")
    return op.drop("saturate")


def output_type_as_zero_point(op: OpBuilder, node: ir.Node) -> Replacement:
    """Let a zero point state the output's type; spell blocks out."""
    if op.attr("block_size", 0) or _output_type(op, op.input(2)) in SIXTEEN_BITS:
        return quantise(op, node)
    kind = op.attr("output_dtype", 0)
    op.drop("block_size", "output_dtype")
    if kind and op.input(2) is None:
        zeros: Any = op.const(np.zeros(_fixed(op, op.x(1))), dtype=ir.DataType(kind))
        op.inputs(op.x(0), op.x(1), zeros)
    return None


def dequantise_bytes(op: OpBuilder, node: ir.Node) -> Replacement:
    """One scale per tensor or slice of bytes stays, as weights of 4 bits become; blocks and 16 bits are spelled out."""
    if op.attr("block_size", 0) or op.need_dtype(op.x()) in SIXTEEN_BITS:
        return dequantise(op, node)
    if op.need_dtype(op.x()) in _WIDER:
        zero = op.input(2)
        op.inputs(_in_bytes(op, op.x()), op.x(1), zero if zero is None else _in_bytes(op, zero))
    return op.drop("block_size")


def _fixed(op: OpBuilder, value: ir.Value) -> list[int]:
    shape = op.shape(value)
    if shape is None or None in shape:
        op.refuse("the shape of the scale is not fixed", hint="possible with a fixed shape")
    return [dim or 0 for dim in shape]


adapter("QuantizeLinear", 19, 13)(without_float8)
extended("QuantizeLinear", 21, 23)
extended("QuantizeLinear", 19, 21)
extended("DequantizeLinear", 19, 21)
adapter("QuantizeLinear", 21, 19)(output_type_as_zero_point)
adapter("DequantizeLinear", 21, 19)(dequantise_bytes)
added("DequantizeLinear", 21, 23, output_dtype=0, otherwise=dequantise)
decomposition("QuantizeLinear", 10)(quantise)
decomposition("DequantizeLinear", 10)(dequantise)


@decomposition("MatMulInteger", 10)
def integer_product(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Subtract the zero points and multiply in int32."""
    return _product(op, (op.x(0), op.input(2)), (op.x(1), op.input(3)))


def _product(op: OpBuilder, *operands: tuple[ir.Value, ir.Value | None]) -> ir.Value:
    int32, sides = int(ir.DataType.INT32), []
    for index, (value, zero) in enumerate(operands):
        side = op.Cast(value, to=int32)
        if zero is not None:
            side = op.Sub(side, _per_row(op, op.Cast(zero, to=int32)) if index == 0 else op.Cast(zero, to=int32))
        sides.append(side)
    result: ir.Value = op.MatMul(*sides)
    return result


def _per_row(op: OpBuilder, parameter: ir.Value) -> ir.Value:
    """One number for all rows as it is; a vector with one number per row as a column."""
    one = op.need_rank(parameter) != 1 or op.shape(parameter) == [1]
    return parameter if one else op.Unsqueeze(parameter, axes=[1])


@decomposition("ConvInteger", 10)
def integer_convolution(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Subtract the zero points and convolve in a float type that holds every sum."""
    return _convolved(op, (op.x(0), op.input(2)), (op.x(1), op.input(3)))


def _convolved(op: OpBuilder, *operands: tuple[ir.Value, ir.Value | None]) -> ir.Value:
    shape = op.shape(operands[1][0])
    terms = None if shape is None or None in shape else int(np.prod([dim or 0 for dim in shape[1:]]))
    exact_in_float = terms is not None and terms * 255 * 255 < 1 << 24
    wide = ir.DataType.FLOAT if exact_in_float else ir.DataType.DOUBLE
    sides = []
    for index, (value, zero) in enumerate(operands):
        side = op.Cast(value, to=int(wide))
        if zero is not None:
            level = op.Cast(zero, to=int(wide))
            side = op.Sub(side, _per_channel(op, level, axis=0) if index == 1 else level)
        sides.append(side)
    result: ir.Value = op.Cast(op.emit("Conv", sides, dict(op.node.attributes)), to=int(ir.DataType.INT32))
    return result


def _per_channel(op: OpBuilder, parameter: ir.Value, *, axis: int) -> ir.Value:
    """A number as it is; a vector along one axis of what is convolved."""
    if op.need_rank(parameter) != 1 or op.shape(parameter) == [1]:
        return parameter
    others: ir.Value = op.Unsqueeze(parameter, axes=list(range(1, op.need_rank(op.node.outputs[0]) - axis)))
    return others


@decomposition("QLinearMatMul", 10)
def quantised_product(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Multiply exactly, then scale once and round, as onnxruntime does."""
    a_scale, b_scale, y_scale = (_scale(op, index) for index in (1, 4, 6))
    product = _product(op, (op.x(0), op.x(2)), (op.x(3), op.x(5)))
    factor = op.Div(op.Mul(_per_row(op, a_scale), b_scale), _per_row(op, y_scale))
    return _requantised(op, product, factor, _per_row(op, op.Cast(op.x(7), to=int(ir.DataType.FLOAT))))


@decomposition("QLinearConv", 10)
def quantised_convolution(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Convolve exactly, then scale once and round, as onnxruntime does."""
    x_scale, w_scale, y_scale = (_scale(op, index) for index in (1, 4, 6))
    total = _convolved(op, (op.x(0), op.x(2)), (op.x(3), op.x(5)))
    if op.input(8) is not None:
        total = op.Add(total, _per_channel(op, op.x(8), axis=1))
    factor = _per_channel(op, op.Div(op.Mul(x_scale, w_scale), y_scale), axis=1)
    return _requantised(op, total, factor, op.Cast(op.x(7), to=int(ir.DataType.FLOAT)))


def _scale(op: OpBuilder, index: int) -> ir.Value:
    scale: ir.Value = op.Cast(op.x(index), to=int(ir.DataType.FLOAT))
    return scale


def _requantised(op: OpBuilder, total: ir.Value, factor: ir.Value, zero: ir.Value) -> ir.Value:
    wide, dtype = ir.DataType.FLOAT, op.need_dtype(op.x(7))
    value = op.Add(_round(op, op.Mul(op.Cast(total, to=int(wide)), factor), wide), zero)
    low, high = op.const(dtype.min, dtype=wide), op.const(dtype.max, dtype=wide)
    result: ir.Value = op.Cast(op.Min(op.Max(value, low), high), to=int(dtype))
    return result
