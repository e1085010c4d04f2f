"""Fourier transforms and window functions.

DFT: 17 takes ``axis`` as an attribute (default 1); 20 as an input (default -2). Below 17 a transform
is a product with its matrix, and a short-time transform a convolution with its rows.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.adapters.parts.computed_axes import axis_by_axis, named
from entrepot.ir.opset.adapters.parts.positions import counted
from entrepot.ir.opset.bodies import expanded
from entrepot.ir.opset.builder import LARGEST_CONSTANT, OpBuilder
from entrepot.ir.opset.rules import Replacement, adapter, decomposition, impossible

Matrix: TypeAlias = np.ndarray[Any, Any]

for _name in ("BlackmanWindow", "HammingWindow", "HannWindow"):
    expanded(_name, 17)
impossible("MelWeightMatrix", 17, 0, "no operator made filter banks before opset 17")


@adapter("DFT", 17, 20)
def dft_axis_to_input(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Write out the axis, since the default changed."""
    op.inputs(op.x(), op.input(1), op.const(np.int64(op.attr("axis", 1))))
    return op.drop("axis")


@adapter("DFT", 20, 17)
def dft_axis_to_attribute(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Move a known axis to an attribute, counted from the front; for a computed one, try each."""
    known = np.array(-2) if op.input(2) is None else op.known(op.x(2))
    if known is None:
        return _along_computed_axis(op)
    axis = int(known.item())
    axis = axis if axis >= 0 else axis + op.need_rank(op.x())
    op.inputs(op.x(), op.input(1))
    return op.set(axis=axis)


def _along_computed_axis(op: OpBuilder) -> ir.Value:
    x, rank = op.x(), op.need_rank(op.x())

    def along(body: OpBuilder, _value: ir.Value, axis: int) -> ir.Value:
        transformed: ir.Value = body.again(x, op.input(1), axis=axis)
        return transformed

    return axis_by_axis(op, x, named(op, op.x(2), rank)[:-1], along)


@decomposition("DFT", 17)
def dft_by_matrix(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Multiply real and imaginary parts with the matrices of the transform."""
    x, rank, shape = op.x(), op.need_rank(op.x()), op.shape(op.x()) or []
    axis, halved = op.attr("axis", 1) % rank, bool(op.attr("inverse", 0) and op.attr("onesided", 0))
    parts = shape[-1]
    if parts is None:
        op.refuse("whether the signal is complex is unknown", hint="possible with a fixed last axis")
    cosine, sine = _known_waves(op, shape[axis]) or _computed_waves(op, x, axis)
    # the axis comes last among the real parts, so that each product is one MatMul
    order = [item for item in range(rank - 1) if item != axis] + [axis]
    real = _part(op, x, order, 0)
    imaginary = _part(op, x, order, 1) if parts == 2 else None
    results = _products(op, cosine, sine, real, imaginary)
    back = np.argsort(order).tolist()
    restored = [op.Unsqueeze(op.Transpose(item, perm=back), op.ints(-1)) for item in results]
    return restored[0] if halved else op.Concat(*restored, axis=-1)


def _known_waves(op: OpBuilder, given: int | None) -> tuple[ir.Value, ir.Value] | None:
    """Real and imaginary part of the matrix, samples by frequencies, where its size is fixed."""
    inverse, onesided = bool(op.attr("inverse", 0)), bool(op.attr("onesided", 0))
    asked = op.known(op.input(1))
    if given is None or (asked is None and op.input(1) is not None):
        return None
    length = int(asked.item()) if asked is not None else 2 * (given - 1) if inverse and onesided else given
    if length * given > LARGEST_CONSTANT:
        return None
    matrix = _inverse_half(length, given) if inverse and onesided else _matrix(length, given, inverse=inverse)
    if onesided and not inverse:
        matrix = matrix[: length // 2 + 1]
    dtype = op.need_dtype(op.x())
    return op.const(matrix.real.T, dtype=dtype), op.const(matrix.imag.T, dtype=dtype)


def _computed_waves(op: OpBuilder, x: ir.Value, axis: int) -> tuple[ir.Value, ir.Value]:
    """The same, computed where a size is known at run time only, or the matrix is large."""
    inverse, onesided = bool(op.attr("inverse", 0)), bool(op.attr("onesided", 0))
    own = op.need_dtype(x)
    given = op.Gather(op.Shape(x), op.ints(axis), axis=0)
    if op.input(1) is not None:
        length = op.Reshape(op.Cast(op.x(1), to=int(ir.DataType.INT64)), op.ints(1))
    else:
        length = op.Mul(op.Sub(given, op.ints(1)), op.ints(2)) if inverse and onesided else given
    return _waves(op, given, length, own, inverse=inverse, onesided=onesided)


def _waves(
    op: OpBuilder, given: ir.Value, length: ir.Value, own: ir.DataType, *, inverse: bool, onesided: bool
) -> tuple[ir.Value, ir.Value]:
    dtype = own if own == ir.DataType.DOUBLE else ir.DataType.FLOAT
    bins = op.Add(op.Div(length, op.ints(2)), op.ints(1)) if onesided and not inverse else length
    samples = op.Unsqueeze(counted(op, given), op.ints(1))
    turns = op.Div(
        op.Cast(op.Mod(op.Mul(samples, counted(op, bins)), length), to=int(dtype)), op.Cast(length, to=int(dtype))
    )
    angle = op.Mul(turns, op.const(2 * np.pi if inverse else -2 * np.pi, dtype=dtype))
    weight = op.Cast(_weight(op, samples, length, halved=inverse and onesided), to=int(dtype))
    weight = op.Div(weight, op.Cast(length, to=int(dtype))) if inverse else weight
    waves = [op.Mul(op.Cos(angle), weight), op.Mul(op.Sin(angle), weight)]
    cosine, sine = waves if dtype == own else [op.Cast(wave, to=int(own)) for wave in waves]
    return cosine, sine


def _weight(op: OpBuilder, samples: ir.Value, length: ir.Value, *, halved: bool) -> ir.Value:
    """0 for samples beyond the length; in half a spectrum, 2 for frequencies that have a mirror image."""
    if not halved:
        inside: ir.Value = op.Cast(op.Less(samples, length), to=int(ir.DataType.INT64))
        return inside
    twice = op.Mul(samples, op.ints(2))
    alone = op.Or(op.Equal(samples, op.ints(0)), op.Equal(twice, length))
    counted_as = op.Sub(op.ints(2), op.Cast(alone, to=int(ir.DataType.INT64)))
    weight: ir.Value = op.Mul(counted_as, op.Cast(op.Not(op.Greater(twice, length)), to=int(ir.DataType.INT64)))
    return weight


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


def _products(
    op: OpBuilder, cosine: ir.Value, sine: ir.Value, real: ir.Value, imaginary: ir.Value | None
) -> list[ir.Value]:
    """Real and imaginary part of (real + i imaginary) times the matrix."""
    if imaginary is None:
        return [op.MatMul(real, cosine), op.MatMul(real, sine)]
    return [
        op.Sub(op.MatMul(real, cosine), op.MatMul(imaginary, sine)),
        op.Add(op.MatMul(real, sine), op.MatMul(imaginary, cosine)),
    ]


@decomposition("STFT", 17)
def short_time_transform(op: OpBuilder, _node: ir.Node) -> Replacement:
    """A convolution with the rows of the transform; frame by frame for a complex signal or computed sizes."""
    shape, step = op.shape(op.x()), op.known(op.x(1))
    if shape is None or (len(shape) == 3 and shape[2] is None):
        op.refuse("whether the signal is complex is unknown", hint="possible with a fixed last axis")
    if op.input(2) is None and op.input(3) is None:
        op.refuse("it has neither a window nor a frame length")
    length, complex_signal = _frame_length(op), len(shape) == 3 and shape[2] == 2
    if step is None or length is None or complex_signal:
        return _frame_by_frame(op, complex_signal=complex_signal)
    return _convolved(op, len(shape), int(step.item()), length)


def _convolved(op: OpBuilder, rank: int, step: int, length: int) -> ir.Value:
    x, window = op.x(), op.input(2)
    bins = length // 2 + 1 if op.attr("onesided", 1) else length
    op.need_small(2 * bins * length)
    rows = _matrix(length, length, inverse=False)[:bins]
    kernel = op.const(np.concatenate([rows.real, rows.imag])[:, None], dtype=op.need_dtype(x))
    if window is not None:
        kernel = op.Mul(kernel, window)
    channel = op.Transpose(x, perm=[0, 2, 1]) if rank == 3 else op.Unsqueeze(x, op.ints(1))
    frames = op.Transpose(op.Conv(channel, kernel, strides=[step]), perm=[0, 2, 1])
    result: ir.Value = op.Transpose(op.Reshape(frames, op.ints(0, 0, 2, bins)), perm=[0, 1, 3, 2])
    return result


def _frame_length(op: OpBuilder) -> int | None:
    if op.input(3) is not None:
        known = op.known(op.x(3))
        return None if known is None else int(known.item())
    shape = op.shape(op.input(2))
    return shape[0] if shape else None


def _frame_by_frame(op: OpBuilder, *, complex_signal: bool) -> ir.Value:
    """Gather the frames side by side and multiply them by the matrix of the transform."""
    x, window, dtype = op.x(), op.input(2), op.need_dtype(op.x())
    step = op.Reshape(op.Cast(op.x(1), to=int(ir.DataType.INT64)), op.ints(1))
    asked = op.input(3) if op.input(3) is not None else op.Shape(window)
    length = op.Reshape(op.Cast(asked, to=int(ir.DataType.INT64)), op.ints(1))
    size = op.Gather(op.Shape(x), op.ints(1), axis=0)
    count = op.Add(op.Div(op.Sub(size, length), step), op.ints(1))
    places = op.Add(op.Mul(op.Unsqueeze(counted(op, count), op.ints(1)), step), counted(op, length))
    parts = [x] if op.rank(x) == 2 else [op.Gather(x, op.const(np.int64(i)), axis=2) for i in range(1 + complex_signal)]
    frames = [op.Gather(part, places, axis=1) for part in parts]
    if window is not None:
        frames = [op.Mul(frame, window) for frame in frames]
    cosine, sine = _waves(op, length, length, dtype, inverse=False, onesided=bool(op.attr("onesided", 1)))
    results = _products(op, cosine, sine, frames[0], frames[1] if complex_signal else None)
    result: ir.Value = op.Concat(*(op.Unsqueeze(item, op.ints(3)) for item in results), axis=3)
    return result
