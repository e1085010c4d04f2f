"""Attention over packed projections, separate ones, and quantised ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from entrepot.ir.contributed.microsoft.integer import integer_product
from entrepot.ir.contributed.microsoft.masks import bias_of_mask, sum_of
from entrepot.ir.contributed.table import spelled
from entrepot.ir.opset.builder import OpBuilder

Value = ir.Value | None

MASKED = -10000.0
"""What onnxruntime adds to the scores of masked positions, where the node does not say."""


@spelled("Attention")
def attention(
    op: OpBuilder,
    input: Value,
    weights: Value,
    bias: Value = None,
    mask_index: Value = None,
    past: Value = None,
    attention_bias: Value = None,
    past_sequence_length: Value = None,
    *,
    num_heads: int,
    unidirectional: int = 0,
    qkv_hidden_sizes: Sequence[int] | None = None,
    mask_filter_value: float | None = None,
    scale: float | None = None,
    do_rotary: int = 0,
    rotary_embedding_dim: int = 0,
    past_present_share_buffer: int = 0,
) -> Any:
    """Three projections in one product, split, and attention between them."""
    if do_rotary or past_present_share_buffer or past_sequence_length is not None:
        op.refuse("its rotary positions and shared buffers are no part of what it means here")
    projected = op.MatMul(input, weights)
    projected = projected if bias is None else op.Add(projected, bias)
    parts = _parted(op, projected, weights, qkv_hidden_sizes)
    return _attended(op, parts, num_heads, mask_index, past, attention_bias, unidirectional, mask_filter_value, scale)


@spelled("QAttention")
def quantised_attention(
    op: OpBuilder,
    input: Value,
    weight: Value,
    bias: Value,
    input_scale: Value,
    weight_scale: Value,
    mask_index: Value = None,
    input_zero_point: Value = None,
    weight_zero_point: Value = None,
    past: Value = None,
    *,
    num_heads: int,
    unidirectional: int = 0,
    mask_filter_value: float | None = None,
    scale: float | None = None,
    do_rotary: int = 0,
    past_present_share_buffer: int = 0,
) -> Any:
    """The same on integers, whose product is scaled."""
    if do_rotary or past_present_share_buffer:
        op.refuse("its rotary positions and shared buffers are no part of what it means here")
    factors = op.Mul(input_scale, weight_scale)
    projected = op.Add(integer_product(op, input, weight, input_zero_point, weight_zero_point, factors), bias)
    parts = _parted(op, projected, weight, None)
    return _attended(op, parts, num_heads, mask_index, past, None, unidirectional, mask_filter_value, scale)


def _parted(op: OpBuilder, projected: Any, weights: Value, sizes: Sequence[int] | None) -> Any:
    if sizes:
        return op.Split(projected, op.ints(*sizes), axis=-1, n_outputs=3)
    return op.Split(projected, axis=-1, num_outputs=3, n_outputs=3)


def _attended(
    op: OpBuilder,
    parts: Sequence[Any],
    heads: int,
    mask: Value,
    past: Value,
    attention_bias: Value,
    causal: int,
    masked: float | None,
    scale: float | None,
) -> Any:
    query, key, value = parts
    total = None if mask is None else op.Shape(key, start=1, end=2)
    before = (None, None)
    if past is not None:
        before = op.Split(past, axis=0, num_outputs=2, n_outputs=2)
        before = tuple(op.Squeeze(each, op.ints(0)) for each in before)
        total = op.Add(op.Shape(past, start=3, end=4), op.Shape(key, start=1, end=2))
    added = bias_of_mask(op, mask, total, MASKED if masked is None else masked, query)
    made = op.Attention(
        query,
        key,
        value,
        sum_of(op, added, attention_bias),
        *before,
        q_num_heads=heads,
        kv_num_heads=heads,
        is_causal=causal or None,
        scale=scale or None,
        n_outputs=3,
    )
    if not op.used(1):
        return made[0]
    present = [op.Unsqueeze(each, op.ints(0)) for each in made[1:]]
    return made[0], op.Concat(*present, axis=0)


@spelled("MultiHeadAttention")
def multi_head_attention(
    op: OpBuilder,
    query: Value,
    key: Value = None,
    value: Value = None,
    bias: Value = None,
    key_padding_mask: Value = None,
    attention_bias: Value = None,
    past_key: Value = None,
    past_value: Value = None,
    past_sequence_length: Value = None,
    cache_indirection: Value = None,
    *,
    num_heads: int,
    mask_filter_value: float | None = None,
    scale: float | None = None,
    unidirectional: int = 0,
) -> Any:
    """Attention between projections, packed or not, of which the bias is added first."""
    if past_sequence_length is not None or cache_indirection is not None:
        op.refuse("its shared buffers and beams are no part of what it means here")
    query, key, value = _separate(op, query, key, value)
    query, key, value = _biased(op, query, key, value, bias, num_heads)
    length = op.Shape(key, start=2, end=3)
    if past_key is not None:
        length = op.Add(length, op.Shape(past_key, start=2, end=3))
    masked = MASKED if mask_filter_value is None else mask_filter_value
    added = bias_of_mask(op, key_padding_mask, length, masked, query)
    made, *present = op.Attention(
        query,
        key,
        value,
        sum_of(op, added, attention_bias),
        past_key,
        past_value,
        is_causal=unidirectional or None,
        scale=scale or None,
        n_outputs=3,
    )
    return joined(op, made), *present


def _separate(op: OpBuilder, query: Value, key: Value, value: Value) -> Any:
    """Query, key and value apart, where they come in one tensor."""
    if key is None:
        if op.need_rank(query) != 5:
            op.refuse("it has neither a key nor a query that holds one")
        parts = op.Split(query, axis=3, num_outputs=3, n_outputs=3)
        return tuple(op.Squeeze(each, op.ints(3)) for each in parts)
    if value is None:
        if op.need_rank(key) != 5:
            op.refuse("it has neither a value nor a key that holds one")
        parts = op.Split(key, axis=3, num_outputs=2, n_outputs=2)
        return query, *(op.Squeeze(each, op.ints(3)) for each in parts)
    return query, key, value


def _biased(op: OpBuilder, query: Value, key: Value, value: Value, bias: Value, heads: int) -> Any:
    """Each with its part of the bias, and its heads before its positions."""
    parts = (query, key, value)
    if bias is not None:
        widths = op.Concat(*(_width(op, each) for each in parts), axis=0)
        shares: Any = op.Split(bias, widths, axis=0, n_outputs=3)
        parts = tuple(_with_bias(op, each, share, heads) for each, share in zip(parts, shares, strict=True))
    return tuple(headed(op, each, heads) for each in parts)


def _width(op: OpBuilder, x: Value) -> Any:
    """Of all heads together, as a vector of one."""
    rank = op.need_rank(x)
    if rank == 3:
        return op.Shape(x, start=2)
    at = 1 if x in op.node.inputs[1:3] else 2
    return op.Mul(op.Shape(x, start=at, end=at + 1), op.Shape(x, start=3))


def _with_bias(op: OpBuilder, x: Value, share: Any, heads: int) -> Any:
    """After a bias; what has its heads apart already has them in its last axes, or before its positions."""
    rank = op.need_rank(x)
    if rank == 3:
        return op.Add(x, share)
    if x in op.node.inputs[1:3]:  # heads first: what was projected before
        return x
    return op.Add(x, op.Reshape(share, op.ints(heads, -1)))


def headed(op: OpBuilder, x: Any, heads: int) -> Any:
    """(batch, positions, width) as (batch, heads, positions, width of a head)."""
    rank = op.need_rank(x)
    if rank == 4 and x in op.node.inputs:
        return x
    apart = x if rank == 4 else op.Reshape(x, op.ints(0, 0, heads, -1))
    return op.Transpose(apart, perm=[0, 2, 1, 3])


def joined(op: OpBuilder, x: Any) -> Any:
    """The other way round."""
    return op.Reshape(op.Transpose(x, perm=[0, 2, 1, 3]), op.ints(0, 0, -1))
