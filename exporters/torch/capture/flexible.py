"""Attention whose scores are changed and masked by functions: ``flex_attention``.

torch.export (2.13) keeps it whole, as an operator that takes functions, and torch.onnx has no translation for that.
"""

from __future__ import annotations

import contextlib
import math
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import torch

_MODULE = "torch.nn.attention.flex_attention"
_OPERATOR = "flex_attention_hop"
_UNCOMPILED = "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG"
"""What torch tells users to set who want to see what their functions do."""


@contextlib.contextmanager
def flexible_attention() -> Iterator[None]:
    """Inside, ``flex_attention`` is made of products, the functions that it is given, and a softmax."""
    module = sys.modules.get(_MODULE)
    if module is None or not (hasattr(module, _OPERATOR) and hasattr(module, _UNCOMPILED)):
        yield
        return
    roots = types.SimpleNamespace(**{**vars(math), "sqrt": _root})
    with (
        mock.patch.object(module, _OPERATOR, attention),
        mock.patch.object(module, _UNCOMPILED, True),
        mock.patch.object(module, "math", roots),
    ):
        yield


def _root(value: Any) -> Any:
    """That of a size that varies is a number that varies; ``math`` would make a constant of it."""
    return torch.sym_sqrt(value) if isinstance(value, torch.SymInt) else math.sqrt(value)


def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    score_mod: Callable[..., torch.Tensor],
    block_mask: Sequence[Any],
    scale: float,
    _kernel_options: Any,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """With all scores at once: both functions are elementwise, and places are given as tensors along four axes.

    Returns:
        The result, and of the scores the logarithm of the sum of exponentials and the largest, both to base 2.
    """
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = (each.repeat_interleave(groups, 1) for each in (key, value))
    precision = torch.float64 if query.dtype == torch.float64 else torch.float32  # as in torch
    scores = query.to(precision) @ key.to(precision).mT * scale
    places = [
        torch.arange(size).reshape([-1 if axis == at else 1 for at in range(4)])
        for axis, size in enumerate(scores.shape)
    ]
    seen = block_mask[-1](*places)
    scores = torch.where(seen, score_mod(scores, *places), -math.inf)
    largest = scores.amax(-1, keepdim=True)
    unseen = largest == -math.inf
    weights = torch.where(unseen, 0.0, torch.softmax(torch.where(unseen, 0.0, scores), -1))
    result = weights.to(query.dtype) @ value.to(query.dtype)
    return result, scores.logsumexp(-1) / math.log(2), largest.squeeze(-1) / math.log(2)
