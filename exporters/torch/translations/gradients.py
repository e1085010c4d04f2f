"""Gradients that a module takes in its own ``forward``, of operators that torch (2.13) does not take apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor

aten = torch.ops.aten


def convolution_backward(  # the signature is torch's
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> Any:
    """Of the input: the convolution in the other direction; of the weight: that of the input with the gradient."""
    if output_mask[1] and groups != 1:
        return NotImplemented
    none = [0] * len(stride)
    found: list[Tensor | None] = [None, None, None]
    if output_mask[0] and transposed:
        how = stride, padding, dilation, False, none, groups
        found[0] = aten.convolution.default(grad_output, weight, None, *how)
    elif output_mask[0]:
        whole = aten.convolution.default(grad_output, weight, None, stride, none, dilation, True, none, groups)
        found[0] = _without_padding(whole, input, padding, stride)
    if output_mask[1]:
        long, short = (grad_output, input) if transposed else (input, grad_output)
        how = dilation, padding, stride, False, none, 1  # steps and distances change places
        product = aten.convolution.default(long.transpose(0, 1), short.transpose(0, 1), None, *how).transpose(0, 1)
        found[1] = _without_padding(product, weight, none, [1] * len(none))
    if output_mask[2]:
        found[2] = grad_output.sum([0, *range(2, grad_output.dim())])
    return tuple(found)


def avg_pool2d_backward(  # the signature is torch's
    grad_output: Tensor,
    input: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Any:
    """Every element spread evenly over what it is the mean of."""
    size = list(kernel_size) * (2 // len(kernel_size))
    steps = list(stride) * (2 // len(stride)) if stride else size
    before = list(padding) * (2 // len(padding))
    if divisor_override or (count_include_pad and not ceil_mode):
        spread = grad_output / (divisor_override or math.prod(size))
    elif count_include_pad and any(before):
        return NotImplemented  # a window that ends behind the padding counts part of it
    else:
        around = [before[1], before[1] + steps[1], before[0], before[0] + steps[0]]
        here = F.pad(torch.ones_like(input).reshape(-1, 1, *input.shape[-2:]), around)
        counts = F.conv2d(here, here.new_ones(1, 1, *size), stride=steps)
        spread = grad_output / counts[..., : grad_output.shape[-2], : grad_output.shape[-1]].reshape(grad_output.shape)
    plane = spread.reshape(-1, 1, *spread.shape[-2:])
    whole = F.conv_transpose2d(plane, plane.new_ones(1, 1, *size), stride=steps)
    return _without_padding(whole, input, before, steps).reshape(input.shape)


def scaled_dot_product_flash_attention_for_cpu_backward(  # the signature is torch's
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    dropout_p: float,
    is_causal: bool,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> Any:
    """By the formulas of softmax and products, with the weights computed again."""
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = query @ key.transpose(-2, -1) * factor
    if is_causal:
        hidden = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(hidden, -math.inf)
    weights = (scores if attn_mask is None else scores + attn_mask).softmax(-1)
    change = grad_out @ value.transpose(-2, -1) - (grad_out * out).sum(-1, keepdim=True)
    change = weights * change * factor
    return change @ key, change.transpose(-2, -1) @ query, weights.transpose(-2, -1) @ grad_out


def log_sigmoid_backward(grad_output: Tensor, input: Tensor, buffer: Tensor) -> Tensor:
    """By the input alone: what the buffer holds for torch's own formula, a graph does not compute."""
    return grad_output * torch.sigmoid(-input)


def _without_padding(whole: Tensor, like: Tensor, padding: Sequence[int], stride: Sequence[int]) -> Tensor:
    """What belongs to the input and not to its padding; elements behind the last window get zeros."""
    more = [amount for step in reversed(stride) for amount in (0, step - 1)]
    padded = F.pad(whole, more) if any(more) else whole
    for axis, (before, size) in enumerate(zip(padding, like.shape[-len(stride) :], strict=True), -len(stride)):
        padded = padded.narrow(axis, before, size)
    return padded


DECOMPOSITIONS = {
    aten.convolution_backward.default: convolution_backward,
    aten.avg_pool2d_backward.default: avg_pool2d_backward,
    aten.log_sigmoid_backward.default: log_sigmoid_backward,
    aten._scaled_dot_product_flash_attention_for_cpu_backward.default: (  # noqa: SLF001 - its name
        scaled_dot_product_flash_attention_for_cpu_backward
    ),
}
