"""``scaled_dot_product_attention`` by its formula.

torch.onnx's translation (2.13) takes only four axes, and gives NaN for a row that may attend to nothing, where torch
gives 0.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere


def scaled_dot_product_attention(  # the signature is torch's
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """softmax(query @ key' * scale + mask) @ value over the last two axes."""
    if dropout_p:
        return F.scaled_dot_product_attention(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )
    if enable_gqa:
        key, value = (_repeated(each, query.shape[-3]) for each in (key, value))
    factor = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = (query * factor) @ key.transpose(-2, -1)
    if is_causal:
        allowed = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool).tril()
        return scores.masked_fill(~allowed, -torch.inf).softmax(-1) @ value
    if attn_mask is None:
        return scores.softmax(-1) @ value
    allowed = attn_mask if attn_mask.dtype == torch.bool else attn_mask != -torch.inf
    bias = scores + attn_mask if attn_mask.dtype != torch.bool else scores.masked_fill(~allowed, -torch.inf)
    return bias.softmax(-1).masked_fill(~allowed.any(-1, keepdim=True), 0.0) @ value


def _repeated(tensor: torch.Tensor, heads: int) -> torch.Tensor:
    return tensor.repeat_interleave(heads // tensor.shape[-3], -3)


REPLACEMENTS = {F.scaled_dot_product_attention: scaled_dot_product_attention}
