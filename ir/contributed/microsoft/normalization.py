"""Normalisations with the sums and look-ups that were fused into them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.ir.contributed.table import spelled
from entrepot.ir.opset.builder import OpBuilder

Value = ir.Value | None


@spelled("SkipLayerNormalization")
def skip_layer_normalization(
    op: OpBuilder,
    input: Value,
    skip: Value,
    gamma: Value,
    beta: Value = None,
    bias: Value = None,
    *,
    epsilon: float = 1e-12,
) -> Any:
    """LayerNormalization of input + skip + bias; the sum is the last output."""
    total = _sum(op, input, skip, bias)
    made = op.LayerNormalization(total, gamma, beta, epsilon=epsilon, n_outputs=3)
    return *made, total


@spelled("SkipSimplifiedLayerNormalization")
def skip_simplified_layer_normalization(
    op: OpBuilder, input: Value, skip: Value, gamma: Value, bias: Value = None, *, epsilon: float = 1e-12
) -> Any:
    """RMSNormalization of input + skip + bias; the sum is the last output."""
    total = _sum(op, input, skip, bias)
    return op.RMSNormalization(total, gamma, epsilon=epsilon), None, None, total


def _sum(op: OpBuilder, x: Value, skip: Value, bias: Value) -> Any:
    total = op.Add(x, skip)
    return total if bias is None else op.Add(total, bias)


@spelled("EmbedLayerNormalization")
def embed_layer_normalization(
    op: OpBuilder,
    input_ids: Value,
    segment_ids: Value,
    word_embedding: Value,
    position_embedding: Value,
    segment_embedding: Value,
    gamma: Value,
    beta: Value,
    mask: Value = None,
    position_ids: Value = None,
    *,
    epsilon: float = 1e-12,
    mask_index_type: int | None = None,
) -> Any:
    """LayerNormalization of the sum of a word's, its position's and its segment's row."""
    positions = _positions(op, input_ids, position_embedding, position_ids)
    total = op.Add(op.Gather(word_embedding, input_ids), positions)
    if segment_embedding is not None and segment_ids is not None:
        total = op.Add(total, op.Gather(segment_embedding, segment_ids))
    return op.LayerNormalization(total, gamma, beta, epsilon=epsilon), _lengths(op, input_ids, mask), total


def _positions(op: OpBuilder, input_ids: Value, table: Value, position_ids: Value) -> Any:
    if position_ids is not None:
        return op.Gather(table, position_ids)
    return op.Slice(table, op.ints(0), op.Shape(input_ids, start=1, end=2), op.ints(0))


def _lengths(op: OpBuilder, input_ids: Value, mask: Value) -> Any:
    """How many tokens of each row count; without a mask, 0."""
    if mask is None:
        return op.Expand(op.const(np.array([0], np.int32)), op.Shape(input_ids, start=0, end=1))
    ones = op.Cast(op.Equal(mask, op.const(1, dtype=ir.DataType.INT32)), to=int(ir.DataType.INT32))
    return op.ReduceSum(ones, op.ints(1), keepdims=0)
