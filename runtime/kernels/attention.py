"""Scaled dot-product attention with masks, windows, caches and grouped heads."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from entrepot.ir.errors import InputError
from entrepot.runtime.kernels.backend import Array, Backend
from entrepot.runtime.kernels.precision import narrow, stash_dtype, widen
from entrepot.runtime.kernels.table import shared

_INF = float("inf")


@shared("Attention", 25)
def attention(
    xp: Backend,
    Q: Array,
    K: Array,
    V: Array,
    attn_mask: Array | None = None,
    past_key: Array | None = None,
    past_value: Array | None = None,
    nonpad_kv_seqlen: Array | None = None,
    *,
    is_causal: int = 0,
    kv_num_heads: int | None = None,
    left_window_size: int = -1,
    q_num_heads: int | None = None,
    qk_matmul_output_mode: int = 0,
    right_window_size: int = -1,
    scale: float | None = None,
    softcap: float = 0.0,
    softmax_precision: int | None = None,
) -> tuple[Array, Array, Array, Array]:
    """softmax(Q K' * scale + bias) V; also the caches, and the scores as they were at the stage asked for."""
    if (past_key is None) != (past_value is None):
        raise InputError("Attention takes past_key and past_value together or not at all")
    packed = len(xp.shape(Q)) == 3
    query = _heads_first(xp, Q, q_num_heads)
    key = _heads_first(xp, K, kv_num_heads)
    value = _heads_first(xp, V, kv_num_heads)
    present_key = key if past_key is None else xp.concat([past_key, key], 2)
    present_value = value if past_value is None else xp.concat([past_value, value], 2)

    raw = _scores(xp, widen(xp, query), widen(xp, present_key), scale)
    capped = _soft_cap(xp, raw, softcap)
    past = 0 if past_key is None else xp.shape(past_key)[2]
    hidden = _hidden_keys(xp, xp.shape(raw), past, nonpad_kv_seqlen, is_causal, left_window_size, right_window_size)
    biased = _biased(xp, capped, attn_mask, hidden)
    weights = _softmax_or_zero(xp, biased, softmax_precision)

    y = narrow(xp, _weighted_values(xp, weights, widen(xp, present_value)), xp.dtype(V))
    y = _heads_packed(xp, y) if packed else y
    stage = (raw, capped, biased, weights)[qk_matmul_output_mode]
    return y, present_key, present_value, narrow(xp, stage, xp.dtype(Q))


def _heads_first(xp: Backend, x: Array, heads: int | None) -> Array:
    """(batch, heads, sequence, size), from (batch, sequence, heads * size) if need be."""
    shape = xp.shape(x)
    if len(shape) == 4:
        return x
    if not heads:
        raise InputError("Attention on rank-3 inputs needs q_num_heads and kv_num_heads")
    return xp.transpose(xp.reshape(x, (*shape[:2], heads, shape[2] // heads)), (0, 2, 1, 3))


def _heads_packed(xp: Backend, y: Array) -> Array:
    batch, heads, length, size = xp.shape(y)
    return xp.reshape(xp.transpose(y, (0, 2, 1, 3)), (batch, length, heads * size))


def _grouped(xp: Backend, x: Array, kv_heads: int) -> Array:
    """Query heads that share a key head stacked along the sequence: (batch, kv_heads, group * sequence, size)."""
    batch, heads, length, size = xp.shape(x)
    if heads == kv_heads:
        return x
    if heads % kv_heads:
        raise InputError(f"{heads} query heads cannot share {kv_heads} key heads evenly")
    return xp.reshape(x, (batch, kv_heads, heads // kv_heads * length, size))


def _scores(xp: Backend, query: Array, key: Array, scale: float | None) -> Array:
    batch, heads, length, size = xp.shape(query)
    factor = 1 / math.sqrt(size) if scale is None else scale
    grouped = _grouped(xp, query * xp.scalar(factor, like=query), xp.shape(key)[1])
    return xp.reshape(xp.matmul(grouped, xp.transpose(key, (0, 1, 3, 2))), (batch, heads, length, xp.shape(key)[2]))


def _soft_cap(xp: Backend, scores: Array, softcap: float) -> Array:
    if not softcap:
        return scores
    cap = xp.scalar(softcap, like=scores)
    return cap * xp.tanh(scores / cap)


def _hidden_keys(
    xp: Backend,
    shape: tuple[int, ...],
    past: int,
    nonpad: Array | None,
    is_causal: int,
    left: int,
    right: int,
) -> Array | None:
    """True where a query may not see a key, broadcastable to the scores; None where every query sees every key."""
    q_length, kv_length = shape[2:]
    int64 = np.dtype(np.int64)
    keys = xp.reshape(xp.arange(0, kv_length, 1, int64), (1, 1, 1, kv_length))
    position = xp.reshape(xp.arange(past, past + q_length, 1, int64), (1, 1, q_length, 1))
    hidden: list[Array] = []
    if nonpad is not None:
        valid = xp.reshape(xp.astype(nonpad, int64), (-1, 1, 1, 1))
        hidden.append(keys >= valid)
        position = position if past else position + valid - q_length
    right = 0 if is_causal else right
    if right >= 0:
        hidden.append(keys > position + right)
    if left >= 0:
        hidden.append(keys < position - left)
    return _any(hidden)


def _any(conditions: list[Array]) -> Array | None:
    total: Any = None
    for condition in conditions:
        total = condition if total is None else total | condition
    return total


def _biased(xp: Backend, scores: Array, mask: Array | None, hidden: Array | None) -> Array:
    minus_infinity = xp.scalar(-_INF, like=scores)
    if mask is not None:
        missing = xp.shape(scores)[-1] - xp.shape(mask)[-1]
        if xp.dtype(mask) == np.dtype(np.bool_):
            scores = xp.where(_padded(xp, mask, missing, fill=False), scores, minus_infinity)
        else:
            scores = scores + _padded(xp, xp.astype(mask, xp.dtype(scores)), missing, fill=-_INF)
    return scores if hidden is None else xp.where(hidden, minus_infinity, scores)


def _padded(xp: Backend, mask: Array, missing: int, fill: float) -> Array:
    """A mask may be shorter than the keys; keys that it does not cover are hidden. One of width 1 broadcasts."""
    if missing <= 0 or xp.shape(mask)[-1] == 1:
        return mask
    return xp.pad(mask, [*[(0, 0)] * (len(xp.shape(mask)) - 1), (0, missing)], "constant", fill)


def _softmax_or_zero(xp: Backend, scores: Array, precision: int | None) -> Array:
    """Softmax over the keys; a query that sees no key gets zeros rather than NaN."""
    dtype = xp.dtype(scores)
    x = xp.astype(scores, stash_dtype(dtype, precision or 1))
    top = xp.max(x, (3,), keepdims=True)
    blind = top == xp.scalar(-_INF, like=x)
    e = xp.exp(x - xp.where(blind, xp.scalar(0.0, like=x), top))
    total = xp.sum(e, (3,), keepdims=True)
    return xp.astype(e / xp.where(blind, xp.scalar(1.0, like=x), total), dtype)


def _weighted_values(xp: Backend, weights: Array, value: Array) -> Array:
    batch, heads, length, _ = xp.shape(weights)
    return xp.reshape(
        xp.matmul(_grouped(xp, weights, xp.shape(value)[1]), value), (batch, heads, length, xp.shape(value)[3])
    )
