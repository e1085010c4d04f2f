"""Convolutions whose groups or margins follow a size: a group for each item of a batch, a margin by a width."""

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
    x, padding = _padded(input, weight, padding)
    if not isinstance(groups, torch.SymInt):
        return F.conv1d(x, weight, bias, stride, padding, dilation, groups)
    steps, holes = ((1, _single(each)) for each in (stride, dilation))
    margins = padding if isinstance(padding, str) else (0, _single(padding))
    return conv2d(x.unsqueeze(-2), weight.unsqueeze(-2), bias, steps, margins, holes, groups).squeeze(-2)


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
    x, padding = _padded(input, weight, padding)
    if not isinstance(groups, torch.SymInt):
        return F.conv2d(x, weight, bias, stride, padding, dilation, groups)
    if x.dim() == 3:
        return conv2d(x.unsqueeze(0), weight, bias, stride, padding, dilation, groups).squeeze(0)
    kernel = weight.shape[2:]
    if isinstance(padding, str):
        edges = [edge for each in _same(kernel, dilation) for edge in (each // 2, each - each // 2)]
        return conv2d(F.pad(x, edges if padding == "same" else [0, 0]), weight, bias, stride, 0, dilation, groups)
    patches = F.unfold(x, kernel, dilation, padding, stride).unflatten(1, (groups, -1))
    result = (weight.reshape(groups, -1, patches.shape[2]) @ patches).flatten(1, 2)
    result = result if bias is None else result + bias.unsqueeze(-1)
    sizes = (
        (size + 2 * margin - hole * (width - 1) - 1) // step + 1
        for size, width, step, margin, hole in zip(
            x.shape[2:], kernel, _pair(stride), _pair(padding), _pair(dilation), strict=True
        )
    )
    return result.unflatten(2, tuple(sizes))


def conv3d(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: Any = 1,
) -> torch.Tensor:
    """With a margin that follows a size made beforehand."""
    x, padding = _padded(input, weight, padding)
    return F.conv3d(x, weight, bias, stride, padding, dilation, groups)


def conv_transpose1d(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: Any = 1,
    dilation: Any = 1,
) -> torch.Tensor:
    """As an image of one row."""
    if not isinstance(groups, torch.SymInt):
        return _with_room(F.conv_transpose1d, (input, weight, bias), stride, padding, output_padding, groups, dilation)
    given = (1, stride), (0, padding), (0, output_padding), (1, dilation)
    steps, margins, further, holes = ((first, _single(each)) for first, each in given)
    rows = input.unsqueeze(-2), weight.unsqueeze(-2)
    return conv_transpose2d(*rows, bias, steps, margins, further, groups, holes).squeeze(-2)


def conv_transpose2d(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: Any = 1,
    dilation: Any = 1,
) -> torch.Tensor:
    """By a convolution with the kernels turned around, over the input with zeros between its elements."""
    if not isinstance(groups, torch.SymInt):
        return _with_room(F.conv_transpose2d, (input, weight, bias), stride, padding, output_padding, groups, dilation)
    if input.dim() == 3:
        one = input.unsqueeze(0)
        return conv_transpose2d(one, weight, bias, stride, padding, output_padding, groups, dilation).squeeze(0)
    turned = weight.unflatten(0, (groups, -1)).transpose(1, 2).flatten(0, 1).flip(2, 3)
    spread, edges = input, list[Any]()
    for axis, step, margin, further, hole in zip(
        (2, 3), _pair(stride), _pair(padding), _pair(output_padding), _pair(dilation), strict=True
    ):
        reach = hole * (weight.shape[axis] - 1) - margin
        spread = F.pad(spread.unsqueeze(axis + 1), [0, 0] * (3 - axis) + [0, step - 1]).flatten(axis, axis + 1)
        edges = [reach, reach - (step - 1) + further, *edges]
    return conv2d(F.pad(spread, edges), turned, bias, 1, 0, dilation, groups)


def conv_transpose3d(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: Any = 1,
    dilation: Any = 1,
) -> torch.Tensor:
    """As large as a size says."""
    return _with_room(F.conv_transpose3d, (input, weight, bias), stride, padding, output_padding, groups, dilation)


def _with_room(
    plain: Any, operands: Any, stride: Any, padding: Any, output_padding: Any, groups: Any, dilation: Any
) -> torch.Tensor:
    """Where the end follows a size, as far as it may reach, and cut there: ONNX's operator takes numbers."""
    rank = operands[1].dim() - 2
    spread = [each if isinstance(each, Sequence) else [each] * rank for each in (output_padding, stride, dilation)]
    ends, most = spread[0], [max(*each) - 1 for each in zip(*spread[1:], strict=True)]
    room = [further if isinstance(end, torch.SymInt) else end for end, further in zip(ends, most, strict=True)]
    found: torch.Tensor = plain(*operands, stride, padding, room, groups, dilation)
    for axis, (end, further) in enumerate(zip(ends, room, strict=True), -rank):
        if isinstance(end, torch.SymInt):
            found = found.narrow(axis, 0, found.shape[axis] - further + end)
    return found


def _padded(input: torch.Tensor, weight: torch.Tensor, padding: Any) -> tuple[torch.Tensor, Any]:
    """The input with margins that follow a size around it, and no others: those of ONNX's operator are numbers."""
    margins = padding if isinstance(padding, Sequence) else [padding] * (weight.dim() - 2)
    if not any(isinstance(margin, torch.SymInt) for margin in margins):
        return input, padding
    return F.pad(input, [margin for each in reversed(margins) for margin in (each, each)]), 0


def _same(kernel: Sequence[Any], dilation: Any) -> Sequence[Any]:
    """What keeps the sizes of an image, the last axis first."""
    return [hole * (width - 1) for width, hole in zip(kernel, _pair(dilation), strict=True)][::-1]


def _pair(value: Any) -> Sequence[Any]:
    return (value, value) if isinstance(value, int | torch.SymInt) else value


def _single(value: Any) -> Any:
    return value if isinstance(value, int | torch.SymInt) else value[0]


REPLACEMENTS: dict[Any, Any] = {
    torch.conv1d: conv1d,
    torch.conv2d: conv2d,
    torch.conv3d: conv3d,
    torch.conv_transpose1d: conv_transpose1d,
    torch.conv_transpose2d: conv_transpose2d,
    torch.conv_transpose3d: conv_transpose3d,
}
