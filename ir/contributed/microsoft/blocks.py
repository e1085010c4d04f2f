"""Weights of few bits, quantised in blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.ir.contributed.table import spelled
from entrepot.ir.opset.builder import OpBuilder

Value = ir.Value | None


@spelled("MatMulNBits")
def matmul_nbits(
    op: OpBuilder,
    A: Value,
    B: Value,
    scales: Value,
    zero_points: Value = None,
    g_idx: Value = None,
    bias: Value = None,
    *,
    K: int,
    N: int,
    block_size: int,
    bits: int = 4,
    accuracy_level: int = 0,
    weight_prepacked: int = 0,
) -> Any:
    """A @ B' with B (N, K) in blocks along K, each with a scale and a zero point; sums are as exact as A is."""
    if weight_prepacked:
        op.refuse("its weights are in an order of memory for one kind of processor")
    if g_idx is not None:
        op.refuse("its groups are in an order of their own")
    blocks = -(-K // block_size)
    numbers = op.Reshape(unpacked(op, B, bits), op.ints(N, blocks, block_size))
    zeros = _zeros(op, zero_points, scales, bits, (N, blocks))
    kind = int(op.need_dtype(scales))
    centred = op.Sub(op.Cast(numbers, to=kind), zeros)
    weight = op.Reshape(op.Mul(centred, op.Reshape(scales, op.ints(N, blocks, 1))), op.ints(N, blocks * block_size))
    if blocks * block_size != K:
        weight = op.Slice(weight, op.ints(0), op.ints(K), op.ints(1))
    product = op.MatMul(A, op.Transpose(weight, perm=[1, 0]))
    return product if bias is None else op.Add(product, bias)


def _zeros(op: OpBuilder, zero_points: Value, scales: Value, bits: int, shape: tuple[int, int]) -> Any:
    """Where zero is in each block: packed like the weights, or floats, or in the middle."""
    rows, blocks = shape
    if zero_points is None:
        return op.const(1 << (bits - 1), like=scales)
    if op.dtype(zero_points) == ir.DataType.UINT8:
        padded = op.Reshape(unpacked(op, zero_points, bits), op.ints(rows, -1))
        zero_points = op.Cast(op.Slice(padded, op.ints(0), op.ints(blocks), op.ints(1)), to=int(op.need_dtype(scales)))
    return op.Reshape(zero_points, op.ints(rows, blocks, 1))


def unpacked(op: OpBuilder, packed: Value, bits: int) -> Any:
    """The numbers in bytes along a new last axis, those in the low bits first."""
    if bits == 8:
        return op.Unsqueeze(packed, op.ints(-1))
    shifts = op.const(np.arange(0, 8, bits, dtype=np.uint8))
    apart = op.BitShift(op.Unsqueeze(packed, op.ints(-1)), shifts, direction="RIGHT")
    return op.BitwiseAnd(apart, op.const(np.array((1 << bits) - 1, np.uint8)))


@spelled("GatherBlockQuantized")
def gather_block_quantized(
    op: OpBuilder,
    data: Value,
    indices: Value,
    scales: Value,
    zero_points: Value = None,
    *,
    bits: int = 4,
    block_size: int = 128,
    gather_axis: int = 0,
    quantize_axis: int = 1,
) -> Any:
    """Gather, of numbers in blocks, each with a scale and a zero point."""
    rank = op.need_rank(data)
    gather_axis, quantize_axis = gather_axis % rank, quantize_axis % rank
    if gather_axis == quantize_axis:
        op.refuse("it gathers along the axis that its blocks are along")
    packed = op.need_dtype(data) == ir.DataType.UINT8
    chosen = [
        each if each is None else op.Gather(each, indices, axis=gather_axis) for each in (data, scales, zero_points)
    ]
    numbers, steps, zeros = chosen
    if packed:
        if quantize_axis != rank - 1:
            op.refuse("its numbers are packed along another axis than its blocks")
        numbers, zeros = (_flat(op, each, bits) for each in (numbers, zeros))
        if zeros is None:
            zeros = op.Expand(op.const(np.array(1 << (bits - 1), np.uint8)), op.Shape(steps))
        else:
            zeros = _like_scales(op, zeros, steps)
    axis = quantize_axis + (op.need_rank(indices) - 1 if quantize_axis > gather_axis else 0)
    return op.DequantizeLinear(numbers, steps, zeros, axis=axis, block_size=block_size)


def _flat(op: OpBuilder, packed: Value, bits: int) -> Any:
    """The numbers in bytes, along the last axis that is there."""
    if packed is None or bits == 8:
        return packed
    lead = op.Shape(packed, start=0, end=-1)
    return op.Reshape(unpacked(op, packed, bits), op.Concat(lead, op.ints(-1), axis=0))


def _like_scales(op: OpBuilder, zeros: Any, scales: Any) -> Any:
    """Without the number that fills up the last byte."""
    return op.Slice(zeros, op.ints(0), op.Shape(scales, start=-1), op.ints(-1))
