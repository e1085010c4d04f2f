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
    tables = (data, scales, zero_points) if packed else (_wide(op, data), scales, _wide(op, zero_points))
    chosen = [each if each is None else op.Gather(each, indices, axis=gather_axis) for each in tables]
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


def _wide(op: OpBuilder, numbers: Value) -> Any:
    """Numbers of four bits in bytes, which every framework has."""
    if numbers is None:
        return None
    signed = op.need_dtype(numbers) == ir.DataType.INT4
    return op.Cast(numbers, to=int(ir.DataType.INT8 if signed else ir.DataType.UINT8))


def _flat(op: OpBuilder, packed: Value, bits: int) -> Any:
    """The numbers in bytes, along the last axis that is there."""
    if packed is None or bits == 8:
        return packed
    lead = op.Shape(packed, start=0, end=-1)
    return op.Reshape(unpacked(op, packed, bits), op.Concat(lead, op.ints(-1), axis=0))


def _like_scales(op: OpBuilder, zeros: Any, scales: Any) -> Any:
    """Without the number that fills up the last byte."""
    return op.Slice(zeros, op.ints(0), op.Shape(scales, start=-1), op.ints(-1))


_HALF = (0.0, 0.0052083333, 2 / 3, 1.0, 1 / 3, 0.5, 1 / 6, 0.25)
_TABLES = (
    (*_HALF, *(-each for each in _HALF)),
    (
        *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453),
        *(-0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0),
        *(0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224),
        *(0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
    ),
)
"""What the sixteen codes of bitsandbytes stand for: its floats of four bits, and quantiles of a normal distribution."""


@spelled("MatMulBnb4")
def matmul_bnb4(
    op: OpBuilder,
    A: Value,
    B: Value,
    absmax: Value,
    *,
    K: int,
    N: int,
    block_size: int,
    quant_type: int,
    training_mode: int = 0,
    transB: int = 1,
) -> Any:
    """A @ B' with B (N, K) as codes in the order of its rows, in blocks that each have their largest size."""
    if training_mode or not transB:
        op.refuse("weights of four bits are transposed and not trained")
    shifts = op.const(np.array([4, 0], np.uint8))
    apart = op.BitShift(op.Unsqueeze(op.Reshape(B, op.ints(-1)), op.ints(1)), shifts, direction="RIGHT")
    codes = op.Cast(op.BitwiseAnd(apart, op.const(np.array(15, np.uint8))), to=int(ir.DataType.INT64))
    numbers = op.Gather(op.const(np.array(_TABLES[quant_type]), like=absmax), op.Reshape(codes, op.ints(-1)))
    whole = -(-N * K // block_size) * block_size
    if whole > N * K + (N * K) % 2:
        numbers = op.Pad(numbers, op.ints(0, whole - N * K - (N * K) % 2))
    scaled = op.Mul(
        op.Reshape(op.Slice(numbers, op.ints(0), op.ints(whole)), op.ints(-1, block_size)),
        op.Unsqueeze(absmax, op.ints(1)),
    )
    flat = op.Slice(op.Reshape(scaled, op.ints(-1)), op.ints(0), op.ints(N * K))
    return op.MatMul(A, op.Transpose(op.Reshape(flat, op.ints(N, K)), perm=[1, 0]))
