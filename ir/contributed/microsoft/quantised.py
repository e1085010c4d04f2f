"""Operators on quantised numbers: taken to floats, computed, and quantised again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.ir.contributed.microsoft.activation import softmax_from
from entrepot.ir.contributed.microsoft.normalization import embed_layer_normalization
from entrepot.ir.contributed.table import spelled
from entrepot.ir.opset.builder import OpBuilder

Value = ir.Value | None


def single(op: OpBuilder, number: Value) -> Any:
    """A scale or zero point of all elements, which may be written as a vector of one."""
    if number is None or op.rank(number) == 0:
        return number
    return op.Reshape(number, op.const(np.zeros(0, np.int64)))


def floats(op: OpBuilder, x: Value, scale: Value, zero: Value) -> Any:
    """What quantised numbers stand for."""
    return op.DequantizeLinear(x, single(op, scale), single(op, zero))


def quantised(op: OpBuilder, x: Any, scale: Value, zero: Value, like: Value) -> Any:
    """Back to numbers of the type that the operator's input has."""
    if zero is None:
        return op.QuantizeLinear(x, single(op, scale), output_dtype=int(op.need_dtype(like)))
    return op.QuantizeLinear(x, single(op, scale), single(op, zero))


@spelled("QuantizeLinear", rounds=True)
def quantize_linear(
    op: OpBuilder, x: Value, y_scale: Value, y_zero_point: Value = None, *, axis: int | None = None
) -> Any:
    """As the standard's, which has its element types by now."""
    return op.QuantizeLinear(x, y_scale, y_zero_point, axis=axis)


@spelled("DequantizeLinear")
def dequantize_linear(
    op: OpBuilder, x: Value, x_scale: Value, x_zero_point: Value = None, *, axis: int | None = None
) -> Any:
    """As the standard's, which has its element types by now."""
    return op.DequantizeLinear(x, x_scale, x_zero_point, axis=axis)


@spelled("QLinearAdd", rounds=True)
def qlinear_add(
    op: OpBuilder,
    A: Value,
    A_scale: Value,
    A_zero_point: Value,
    B: Value,
    B_scale: Value,
    B_zero_point: Value,
    C_scale: Value,
    C_zero_point: Value = None,
) -> Any:
    """A + B."""
    total = op.Add(floats(op, A, A_scale, A_zero_point), floats(op, B, B_scale, B_zero_point))
    return quantised(op, total, C_scale, C_zero_point, A)


@spelled("QLinearMul", rounds=True)
def qlinear_mul(
    op: OpBuilder,
    A: Value,
    A_scale: Value,
    A_zero_point: Value,
    B: Value,
    B_scale: Value,
    B_zero_point: Value,
    C_scale: Value,
    C_zero_point: Value = None,
) -> Any:
    """A * B."""
    product = op.Mul(floats(op, A, A_scale, A_zero_point), floats(op, B, B_scale, B_zero_point))
    return quantised(op, product, C_scale, C_zero_point, A)


@spelled("QLinearSigmoid", rounds=True)
def qlinear_sigmoid(
    op: OpBuilder, X: Value, X_scale: Value, X_zero_point: Value, Y_scale: Value, Y_zero_point: Value = None
) -> Any:
    """Sigmoid(X)."""
    return quantised(op, op.Sigmoid(floats(op, X, X_scale, X_zero_point)), Y_scale, Y_zero_point, X)


@spelled("QLinearLeakyRelu", rounds=True)
def qlinear_leaky_relu(
    op: OpBuilder,
    X: Value,
    X_scale: Value,
    X_zero_point: Value,
    Y_scale: Value,
    Y_zero_point: Value = None,
    *,
    alpha: float = 0.01,
) -> Any:
    """LeakyRelu(X)."""
    made = op.LeakyRelu(floats(op, X, X_scale, X_zero_point), alpha=alpha)
    return quantised(op, made, Y_scale, Y_zero_point, X)


@spelled("QLinearSoftmax", rounds=True)
def qlinear_softmax(
    op: OpBuilder,
    X: Value,
    X_scale: Value,
    x_zero_point: Value,
    y_scale: Value,
    y_zero_point: Value = None,
    *,
    axis: int = -1,
    opset: int,
) -> Any:
    """Softmax(X), as it was at an opset."""
    x = floats(op, X, X_scale, x_zero_point)
    made = op.Softmax(x, axis=axis) if opset >= 13 else softmax_from(op, x, axis)
    return quantised(op, made, y_scale, y_zero_point, X)


@spelled("QLinearConcat", rounds=True)
def qlinear_concat(op: OpBuilder, Y_scale: Value, Y_zero_point: Value, *inputs: Value, axis: int) -> Any:
    """All inputs, each with its scale and zero point, in one."""
    triples = [inputs[at : at + 3] for at in range(0, len(inputs), 3)]
    parts = [floats(op, x, scale, zero) for x, scale, zero in triples]
    return quantised(op, op.Concat(*parts, axis=axis), Y_scale, Y_zero_point, inputs[0])


@spelled("QLinearWhere", rounds=True)
def qlinear_where(
    op: OpBuilder,
    condition: Value,
    X: Value,
    x_scale: Value,
    x_zero_point: Value,
    Y: Value,
    y_scale: Value,
    y_zero_point: Value,
    z_scale: Value,
    z_zero_point: Value,
) -> Any:
    """X where the condition holds, else Y."""
    chosen = op.Where(condition, floats(op, X, x_scale, x_zero_point), floats(op, Y, y_scale, y_zero_point))
    return quantised(op, chosen, z_scale, z_zero_point, X)


def from_last(op: OpBuilder, x: Any, swapped: int) -> Any:
    """The channels before the positions, where they come last."""
    if not swapped:
        return x
    rank = op.need_rank(x)
    return op.Transpose(x, perm=[0, rank - 1, *range(1, rank - 1)])


def to_last(op: OpBuilder, x: Any, like: Value) -> Any:
    """The channels behind the positions, as in an input that has them there."""
    return op.Transpose(x, perm=[0, *range(2, op.need_rank(like)), 1])


@spelled("QLinearGlobalAveragePool", rounds=True)
def qlinear_global_average_pool(
    op: OpBuilder,
    X: Value,
    x_scale: Value,
    x_zero_point: Value,
    y_scale: Value,
    y_zero_point: Value,
    *,
    channels_last: int = 0,
) -> Any:
    """The mean of each channel."""
    rank = op.need_rank(X)
    axes = range(1, rank - 1) if channels_last else range(2, rank)
    made = op.ReduceMean(floats(op, X, x_scale, x_zero_point), op.ints(*axes))
    return quantised(op, made, y_scale, y_zero_point, X)


@spelled("QLinearAveragePool", rounds=True)
def qlinear_average_pool(
    op: OpBuilder,
    X: Value,
    x_scale: Value,
    x_zero_point: Value,
    y_scale: Value,
    y_zero_point: Value = None,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    channels_last: int = 0,
    count_include_pad: int = 0,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Any:
    """The mean of each window."""
    x = from_last(op, floats(op, X, x_scale, x_zero_point), channels_last)
    made = op.AveragePool(
        x,
        auto_pad=auto_pad,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    )
    if channels_last:
        made = to_last(op, made, X)
    return quantised(op, made, y_scale, y_zero_point, X)


@spelled("QLinearConv", rounds=True)
def qlinear_conv(
    op: OpBuilder,
    x: Value,
    x_scale: Value,
    x_zero_point: Value,
    w: Value,
    w_scale: Value,
    w_zero_point: Value,
    y_scale: Value,
    y_zero_point: Value,
    B: Value = None,
    *,
    auto_pad: str = "NOTSET",
    channels_last: int = 0,
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Any:
    """As the standard's, where channels may come last."""
    given = (x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, B)
    made = op.QLinearConv(
        from_last(op, x, channels_last),
        *given,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    )
    return to_last(op, made, x) if channels_last else made


@spelled("QEmbedLayerNormalization")
def quantised_embed_layer_normalization(
    op: OpBuilder,
    input_ids: Value,
    segment_ids: Value,
    word_embedding_quant: Value,
    position_embedding_quant: Value,
    segment_embedding: Value,
    gamma_quant: Value,
    beta_quant: Value,
    mask: Value,
    word_embedding_scale: Value,
    position_embedding_scale: Value,
    segment_embedding_scale: Value,
    gamma_scale: Value,
    beta_scale: Value,
    word_embedding_zero_point: Value,
    position_embedding_zero_point: Value,
    segment_embedding_zero_point: Value,
    gamma_zero_point: Value,
    beta_zero_point: Value,
    *,
    epsilon: float = 1e-12,
) -> Any:
    """EmbedLayerNormalization on tables that are quantised."""
    segments = segment_embedding
    if segments is not None:
        segments = floats(op, segments, segment_embedding_scale, segment_embedding_zero_point)
    made = embed_layer_normalization(
        op,
        input_ids,
        segment_ids,
        floats(op, word_embedding_quant, word_embedding_scale, word_embedding_zero_point),
        floats(op, position_embedding_quant, position_embedding_scale, position_embedding_zero_point),
        segments,
        floats(op, gamma_quant, gamma_scale, gamma_zero_point),
        floats(op, beta_quant, beta_scale, beta_zero_point),
        mask,
        epsilon=epsilon,
    )
    return made[:2]
