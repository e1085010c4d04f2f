"""Convolutions with as many groups as a size says: one for each item of a batch, with weights of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere


def conv1d(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: Any = 1,
) -> torch.Tensor:
    """As an image of one row."""
    if not isinstance(groups, torch.SymInt) or isinstance(padding, str):
        return F.conv1d(input, weight, bias, stride, padding, dilation, groups)
    steps, margins, holes = ((first, _single(each)) for first, each in ((1, stride), (0, padding), (1, dilation)))
    return conv2d(input.unsqueeze(-2), weight.unsqueeze(-2), bias, steps, margins, holes, groups).squeeze(-2)


def conv2d(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: Any = 1,
) -> torch.Tensor:
    """By a product of patches and weights, for ONNX's operator has a fixed number of groups."""
    if not isinstance(groups, torch.SymInt) or isinstance(padding, str) or input.dim() != 4:
        return F.conv2d(input, weight, bias, stride, padding, dilation, groups)
    kernel = weight.shape[2:]
    patches = F.unfold(input, kernel, dilation, padding, stride).unflatten(1, (groups, -1))
    result = (weight.reshape(groups, -1, patches.shape[2]) @ patches).flatten(1, 2)
    result = result if bias is None else result + bias.unsqueeze(-1)
    sizes = (
        (size + 2 * margin - hole * (width - 1) - 1) // step + 1
        for size, width, step, margin, hole in zip(
            input.shape[2:], kernel, _pair(stride), _pair(padding), _pair(dilation), strict=True
        )
    )
    return result.unflatten(2, tuple(sizes))


def _pair(value: Any) -> Sequence[Any]:
    return (value, value) if isinstance(value, int | torch.SymInt) else value


def _single(value: Any) -> Any:
    return value if isinstance(value, int | torch.SymInt) else value[0]


REPLACEMENTS: dict[Any, Any] = {torch.conv1d: conv1d, torch.conv2d: conv2d}
