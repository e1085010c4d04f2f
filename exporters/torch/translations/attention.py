"""``scaled_dot_product_attention`` by its formula.

torch.onnx's translation (2.13) takes four axes only, gives NaN for a row that may attend to nothing, where torch
gives 0, and computes the scores of halves in half precision, where they overflow.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere

from entrepot.exporters.torch.translations.cut_short import laid_out


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
    query, key, value = map(laid_out, (query, key, value))
    if enable_gqa:
        key, value = (_repeated(each, query.shape[-3]) for each in (key, value))
    factor = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = (_widened(query) * factor) @ _widened(key).transpose(-2, -1)
    bias, seeing = (None, None) if attn_mask is None or is_causal else _bias(attn_mask)
    weights = _weights(scores, bias, is_causal=is_causal).to(value.dtype)
    result = (F.dropout(weights, dropout_p) if dropout_p else weights) @ value
    return result if seeing is None else result * seeing.to(value.dtype)


def _weights(scores: torch.Tensor, bias: torch.Tensor | None, *, is_causal: bool) -> torch.Tensor:
    if is_causal:
        allowed = torch.ones(*scores.shape[-2:], dtype=torch.bool).tril()
        return scores.masked_fill(~allowed, -torch.inf).softmax(-1)
    return (scores if bias is None else scores + bias.to(scores.dtype)).softmax(-1)


def _bias(attn_mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What is added to the scores, and which rows attend to anything; layers with one mask share both.

    A row that attends to nothing has no bias, so that its softmax is finite, and its result is multiplied by 0: there
    are fewer features than places to attend to, most of the time.
    """
    allowed = attn_mask if attn_mask.dtype == torch.bool else attn_mask != -torch.inf
    bias = torch.where(attn_mask, 0.0, -torch.inf) if attn_mask.dtype == torch.bool else attn_mask
    seeing = allowed.any(-1, keepdim=True)
    return torch.where(seeing, bias, 0.0), seeing


def _widened(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def _repeated(tensor: torch.Tensor, heads: int) -> torch.Tensor:
    return tensor.repeat_interleave(heads // tensor.shape[-3], -3)


# where torch's own functions call it, which replacements do not reach
DECOMPOSITIONS = {torch.ops.aten.scaled_dot_product_attention.default: scaled_dot_product_attention}
REPLACEMENTS = {F.scaled_dot_product_attention: scaled_dot_product_attention}
