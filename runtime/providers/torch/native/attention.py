"""Attention by torch's fused kernels, where nothing is asked for that they do not have."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from entrepot.runtime.kernels import attention as shared
from entrepot.runtime.providers.torch.backend import TorchBackend
from entrepot.runtime.providers.torch.table import native

_FUSED = frozenset({torch.float32, torch.float64})


@native("Attention", 25)
def attention(
    Q: Tensor,
    K: Tensor,
    V: Tensor,
    attn_mask: Tensor | None = None,
    past_key: Tensor | None = None,
    past_value: Tensor | None = None,
    nonpad_kv_seqlen: Tensor | None = None,
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
    n_outputs: int = 1,
) -> tuple[Tensor, ...]:
    """softmax(Q K' * scale + bias) V; also the caches, and the scores as they were at the stage asked for."""
    special = softcap or left_window_size >= 0 or right_window_size >= 0 or nonpad_kv_seqlen is not None
    narrow = Q.device.type == "cpu" and Q.dtype not in _FUSED  # these kernels round the weights to 16 bits
    odd = (past_key is None) != (past_value is None) or softmax_precision not in (None, 1, 10, 16)
    if special or narrow or odd or n_outputs > 3 or not Q.numel() or not V.numel():
        return shared.attention(
            TorchBackend(Q.device), Q, K, V, attn_mask, past_key, past_value, nonpad_kv_seqlen, is_causal=is_causal,
            kv_num_heads=kv_num_heads, left_window_size=left_window_size, q_num_heads=q_num_heads,
            qk_matmul_output_mode=qk_matmul_output_mode, right_window_size=right_window_size, scale=scale,
            softcap=softcap, softmax_precision=softmax_precision,
        )[:n_outputs]  # fmt: skip
    query, key, value = _heads_first(Q, q_num_heads), _heads_first(K, kv_num_heads), _heads_first(V, kv_num_heads)
    present_key = key if past_key is None else torch.cat((past_key, key), 2)
    present_value = value if past_value is None else torch.cat((past_value, value), 2)
    mask, causal = _mask(query, present_key, attn_mask, bool(is_causal), 0 if past_key is None else past_key.shape[2])
    y = functional.scaled_dot_product_attention(
        query, present_key, present_value, mask, is_causal=causal, scale=scale,
        enable_gqa=query.shape[1] != key.shape[1],
    )  # fmt: skip
    if Q.ndim == 3:
        y = y.transpose(1, 2).reshape(Q.shape[0], Q.shape[1], -1)
    return (y, present_key, present_value)[:n_outputs]


def _heads_first(x: Tensor, heads: int | None) -> Tensor:
    if x.ndim == 4:
        return x
    batch, length, size = x.shape
    return x.reshape(batch, length, heads or 1, size // (heads or 1)).transpose(1, 2)


def _mask(query: Tensor, key: Tensor, given: Tensor | None, causal: bool, past: int) -> tuple[Tensor | None, bool]:
    """The mask, and whether what remains of it is that no query sees a later key."""
    if given is not None and given.shape[-1] not in (1, key.shape[2]):
        hidden: Any = False if given.dtype is torch.bool else -float("inf")
        given = torch.constant_pad_nd(given, (0, key.shape[2] - given.shape[-1]), hidden)
    if given is not None and given.dtype is not torch.bool and given.dtype != query.dtype:
        given = given.to(query.dtype)
    if not causal or (given is None and not past):
        return _as_matrix(given), causal
    keys = torch.arange(key.shape[2], device=query.device)
    queries = torch.arange(past, past + query.shape[2], device=query.device)
    seen = keys <= queries.unsqueeze(1)
    if given is None or given.dtype is torch.bool:
        return seen if given is None else given & seen, False
    return _as_matrix(torch.where(seen, given, -float("inf"))), False


def _as_matrix(mask: Tensor | None) -> Tensor | None:
    return mask if mask is None or mask.ndim > 1 else mask.unsqueeze(0)
