"""Fourier transforms and window functions.

DFT: 17 takes ``axis`` as an attribute (default 1); 20 as an input (default -2). Below 17 a transform of known length
is a product with its matrix, and a short-time transform a convolution with its rows.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.bodies import expanded
from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, adapter, decomposition, impossible

Matrix: TypeAlias = np.ndarray[Any, Any]

for _name in ("BlackmanWindow", "HammingWindow", "HannWindow"):
    expanded(_name, 17)
impossible("MelWeightMatrix", 17, 0, "no filter banks existed before opset 17")


@adapter("DFT", 17, 20)
def dft_axis_to_input(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Write the axis out: the default changed."""
    op.inputs(op.x(), op.input(1), op.const(np.int64(op.attr("axis", 1))))
    return op.drop("axis")


@adapter("DFT", 20, 17)
def dft_axis_to_attribute(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Move a known axis to an attribute, counted from the front."""
    axis = -2 if op.input(2) is None else int(op.need_known(2, "axis").item())
    axis = axis if axis >= 0 else axis + op.need_rank(op.x())
    op.inputs(op.x(), op.input(1))
    return op.set(axis=axis)


@decomposition("DFT", 17)
def dft_by_matrix(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Multiply real and imaginary parts with the matrices of the transform."""
    x, rank, shape = op.x(), op.need_rank(op.x()), op.shape(op.x()) or []
    axis, inverse, onesided = op.attr("axis", 1) % rank, op.attr("inverse", 0), op.attr("onesided", 0)
    given, parts = shape[axis], shape[-1]
    if given is None or parts is None:
        op.refuse("the length of the signal is not fixed", hint="possible with a fixed length")
    length = int(op.need_known(1, "dft_length").item()) if op.input(1) is not None else None
    if length is None:
        length = 2 * (given - 1) if inverse and onesided else given
    op.need_small(length * given)
    matrix = _inverse_half(length, given) if inverse and onesided else _matrix(length, given, bool(inverse))
    if onesided and not inverse:
        matrix = matrix[: length // 2 + 1]
    # the axis comes last among the real parts, so that each product is one MatMul
    order = [item for item in range(rank - 1) if item != axis] + [axis]
    real = _part(op, x, order, 0)
    imaginary = _part(op, x, order, 1) if parts == 2 else None
    results = _products(op, matrix, real, imaginary)
    back = np.argsort(order).tolist()
    restored = [op.Unsqueeze(op.Transpose(item, perm=back), op.ints(-1)) for item in results]
    return restored[0] if inverse and onesided else op.Concat(*restored, axis=-1)


def _matrix(length: int, given: int, inverse: bool) -> Matrix:
    """Rows are frequencies, columns samples; samples beyond the length do not count."""
    angle = 2j * np.pi * np.outer(np.arange(length), np.arange(given)) / length
    matrix = np.exp(angle) / length if inverse else np.exp(-angle)
    matrix[:, length:] = 0
    return matrix


def _inverse_half(length: int, given: int) -> Matrix:
    """From half a spectrum to the real signal: the other half is its mirror image."""
    bins = np.arange(given)
    twice = np.where((bins == 0) | (2 * bins == length), 1, 2) * (2 * bins <= length)
    angle = 2j * np.pi * np.outer(np.arange(length), bins) / length
    return np.exp(angle) * twice / length


def _part(op: OpBuilder, x: ir.Value, order: list[int], index: int) -> ir.Value:
    part: ir.Value = op.Transpose(op.Gather(x, op.const(np.int64(index)), axis=-1), perm=order)
    return part


def _products(op: OpBuilder, matrix: Matrix, real: ir.Value, imaginary: ir.Value | None) -> list[ir.Value]:
    """Real and imaginary part of (real + i imaginary) times the matrix."""
    dtype = op.need_dtype(real)
    cosine, sine = op.const(matrix.real.T, dtype=dtype), op.const(matrix.imag.T, dtype=dtype)
    if imaginary is None:
        return [op.MatMul(real, cosine), op.MatMul(real, sine)]
    return [
        op.Sub(op.MatMul(real, cosine), op.MatMul(imaginary, sine)),
        op.Add(op.MatMul(real, sine), op.MatMul(imaginary, cosine)),
    ]


@decomposition("STFT", 17)
def stft_by_convolution(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Convolve with the rows of the transform, weighed by the window."""
    x, window = op.x(), op.input(2)
    shape, dtype = op.shape(x), op.need_dtype(x)
    if shape is None or (len(shape) == 3 and shape[2] != 1):
        op.refuse("the short-time transform of a complex signal is not expressible before opset 17")
    step, length = int(op.need_known(1, "frame_step").item()), _frame_length(op)
    bins = length // 2 + 1 if op.attr("onesided", 1) else length
    op.need_small(2 * bins * length)
    rows = _matrix(length, length, inverse=False)[:bins]
    kernel = op.const(np.concatenate([rows.real, rows.imag])[:, None], dtype=dtype)
    if window is not None:
        kernel = op.Mul(kernel, window)
    channel = op.Transpose(x, perm=[0, 2, 1]) if len(shape) == 3 else op.Unsqueeze(x, op.ints(1))
    frames = op.Conv(channel, kernel, strides=[step])
    return op.Transpose(op.Reshape(frames, op.ints(0, 2, bins, -1)), perm=[0, 3, 2, 1])


def _frame_length(op: OpBuilder) -> int:
    if op.input(3) is not None:
        return int(op.need_known(3, "frame_length").item())
    shape = op.shape(op.input(2))
    if not shape or shape[0] is None:
        op.refuse("the length of a frame is not known", hint="possible with a window of fixed size")
    return shape[0]
