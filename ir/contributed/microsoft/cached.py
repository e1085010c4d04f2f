"""Attention of a decoder over a cache of its own, and positions turned into angles."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from entrepot.ir.contributed.microsoft.attention import headed, joined
from entrepot.ir.contributed.microsoft.masks import numbers_to
from entrepot.ir.contributed.table import spelled
from entrepot.ir.opset.builder import OpBuilder

Value = ir.Value | None
_INT64 = int(ir.DataType.INT64)


@spelled("RotaryEmbedding")
def rotary_embedding(
    op: OpBuilder,
    input: Value,
    position_ids: Value,
    cos_cache: Value,
    sin_cache: Value,
    *,
    interleaved: int = 0,
    is_packed_batching: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    scale: float = 1.0,
) -> Any:
    """As the standard's; one position is where every row begins."""
    if is_packed_batching or scale != 1.0:
        op.refuse("packed rows and scaled angles are no part of what it means here")
    axis = op.need_rank(input) - 2
    positions = position_ids
    if op.need_rank(position_ids) == 1:
        steps = numbers_to(op, op.Shape(input, start=axis, end=axis + 1))
        shape = op.Concat(op.Shape(input, start=0, end=1), op.Shape(input, start=axis, end=axis + 1), axis=0)
        positions = op.Expand(op.Add(steps, position_ids), shape)
    apart = axis == 1 and not num_heads
    made = op.RotaryEmbedding(
        _by_heads(op, input, cos_cache) if apart else input,
        cos_cache,
        sin_cache,
        positions,
        interleaved=interleaved,
        num_heads=num_heads,
        rotary_embedding_dim=rotary_embedding_dim,
    )
    return joined(op, made) if apart else made


def _by_heads(op: OpBuilder, x: Value, cos_cache: Value) -> Any:
    """Heads before positions, each as wide as what is turned."""
    width = op.Mul(op.Shape(cos_cache, start=1), op.ints(2))
    return op.Transpose(op.Reshape(x, op.Concat(op.ints(0, 0, -1), width, axis=0)), perm=[0, 2, 1, 3])


@spelled("GroupQueryAttention")
def group_query_attention(
    op: OpBuilder,
    query: Value,
    key: Value,
    value: Value,
    past_key: Value,
    past_value: Value,
    seqlens_k: Value,
    total_sequence_length: Value,
    cos_cache: Value = None,
    sin_cache: Value = None,
    position_ids: Value = None,
    attention_bias: Value = None,
    *,
    num_heads: int,
    kv_num_heads: int,
    scale: float = 0.0,
    softcap: float = 0.0,
    do_rotary: int = 0,
    rotary_interleaved: int = 0,
    local_window_size: int = -1,
    smooth_softmax: int = -1,
    causal: int = 1,
    qk_output: int = 0,
    k_quant_type: str = "NONE",
    v_quant_type: str = "NONE",
    kv_cache_bit_width: int = 0,
    sliding_window_cache: int = 0,
    qk_norm_epsilon: float = 1e-6,
) -> Any:
    """New keys and values are put behind those of each row, whose lengths differ; a query sees what is not after it."""
    if smooth_softmax == 1 or qk_output or sliding_window_cache or {k_quant_type, v_quant_type} != {"NONE"}:
        op.refuse("smoothed scores, kept scores and quantised or sliding caches are no part of what it means here")
    heads, groups = num_heads, kv_num_heads
    query, key, value = _apart(op, query, key, value, heads, groups)
    query, key, value = headed(op, query, heads), headed(op, key, groups), headed(op, value, groups)
    new = op.Shape(query, start=2, end=3)
    lengths = op.Add(op.Reshape(op.Cast(seqlens_k, to=_INT64), op.ints(-1, 1)), op.ints(1))
    first = op.Max(op.Sub(lengths, new), op.ints(0))
    at = op.Add(first, op.Unsqueeze(numbers_to(op, new), op.ints(0)))
    if do_rotary:
        turned = [
            op.RotaryEmbedding(
                each,
                cos_cache,
                sin_cache,
                at if position_ids is None else position_ids,
                interleaved=rotary_interleaved,
            )
            for each in (query, key)
        ]
        query, key = turned
    keys, values = (
        _put(op, before, each, first, new, total_sequence_length)
        for before, each in ((past_key, key), (past_value, value))
    )
    mask = _visible(op, at, lengths, keys, local_window_size, causal)
    if attention_bias is not None:
        mask = op.Where(mask, attention_bias, op.const(float("-inf"), like=attention_bias))
    made = op.Attention(query, keys, values, mask, scale=scale or None, softcap=softcap or None)
    return joined(op, made), keys, values


def _apart(op: OpBuilder, query: Value, key: Value, value: Value, heads: int, groups: int) -> Any:
    """Query, key and value apart, where they come in one tensor."""
    if key is not None:
        return query, key, value
    size = op.Div(op.Shape(query, start=2), op.ints(heads + 2 * groups))
    return op.Split(query, op.Mul(size, op.ints(heads, groups, groups)), axis=-1, n_outputs=3)


def _put(op: OpBuilder, before: Value, new: Any, first: Any, count: Any, total: Value) -> Any:
    """The cache with new positions from ``first`` of each row on, as long as all of them, or as it was."""
    if before is None:
        return new
    size = op.Shape(before, start=2, end=3)
    length = op.Max(size, op.Reshape(op.Cast(total, to=_INT64), op.ints(1)))
    places = op.Unsqueeze(numbers_to(op, length), op.ints(0))
    since = op.Sub(places, first)
    is_new = op.And(op.GreaterOrEqual(since, op.ints(0)), op.Less(since, count))
    source = op.Where(is_new, op.Add(since, size), op.Min(places, op.Sub(op.Add(size, count), op.ints(1))))
    both = op.Concat(before, new, axis=2)
    shape = op.Concat(op.Shape(both, start=0, end=2), length, op.Shape(both, start=3, end=4), axis=0)
    return op.GatherElements(both, op.Expand(op.Unsqueeze(source, op.ints(1, 3)), shape), axis=2)


def _visible(op: OpBuilder, at: Any, lengths: Any, keys: Any, window: int, causal: int) -> Any:
    """Which places each query sees, with the axes (batch, heads, queries, places)."""
    places = numbers_to(op, op.Shape(keys, start=2, end=3))
    own = op.Unsqueeze(at, op.ints(2))
    ends = own if causal else op.Unsqueeze(op.Sub(lengths, op.ints(1)), op.ints(2))
    seen = op.LessOrEqual(places, ends)
    if window > 0:
        seen = op.And(seen, op.Greater(places, op.Sub(own, op.ints(window))))
    return op.Unsqueeze(seen, op.ints(1))
