"""Convolutions and products by constant weights on the host, packed once, with what follows them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from entrepot.ir.errors import InputError
from entrepot.runtime.node_view import InputView, NodeView
from entrepot.runtime.plan import Step
from entrepot.runtime.providers.torch import upstream
from entrepot.runtime.providers.torch.dtypes import tensor_of
from entrepot.runtime.providers.torch.measured import fastest
from entrepot.runtime.providers.torch.native.convolution import CONVOLUTIONS
from entrepot.runtime.providers.torch.windows import spatial_pads

_F32 = np.dtype(np.float32)
_FEW_ROWS = 16
"""Up to so many, a product reads its matrix once, packed or not."""

_WORK = 1 << 21
"""Multiplications below which packing gains less than its calls cost."""


def following(step: Step) -> upstream.Unary | None:
    """A step as a packed kernel applies it to its result; ``None`` for what it does not know."""
    numbers = [None if value is None else value.constant for value in step.inputs[1:]]
    if step.is_a("Clip") and len(numbers) == 2 and all(isinstance(number, np.ndarray) for number in numbers):
        return "hardtanh", [float(number.item()) for number in numbers if number is not None], ""
    if step.is_a("Relu"):
        return "relu", [], ""
    if step.is_a("LeakyRelu"):
        return "leaky_relu", [float(step.attributes.get("alpha", 0.01))], ""
    if step.is_a("Swish") and step.attributes.get("alpha", 1.0) == 1.0:
        return "swish", [], ""
    if step.is_a("Sigmoid", "HardSwish", "Tanh"):
        return step.op_type.lower(), [], ""
    return None


_IN_PLACE: dict[str, Callable[..., Tensor]] = {
    "relu": torch.relu_,
    "hardtanh": torch.clamp_,
    "leaky_relu": functional.leaky_relu_,
    "swish": lambda x: functional.silu(x, inplace=True),
    "sigmoid": torch.sigmoid_,
    "tanh": torch.tanh_,
    "hardswish": lambda x: functional.hardswish(x, inplace=True),
    "none": lambda x: x,
}


def finished(y: Tensor, unary: upstream.Unary, residual: Tensor | None = None) -> Tensor:
    """A fresh result with an addition and an activation, in place."""
    if residual is not None:
        y.add_(residual)
    return y if unary[0] == "none" else _IN_PLACE[unary[0]](y, *unary[1])


def _is_weight(given: InputView | None) -> bool:
    return given is not None and given.constant is not None and given.constant.dtype == _F32


def convolved(node: NodeView, unary: upstream.Unary, *, with_residual: bool) -> Callable[..., Tensor] | None:
    """A kernel for ``unary(conv(X, W, B) [+ residual])``; ``None`` where nothing is gained by one."""
    X, W, B = (*node.inputs, None)[:3]
    if X is None or W is None or W.constant is None or X.dtype != _F32 or not _is_weight(W):
        return None
    if W.constant.ndim not in (4, 5) or not (B is None or _is_weight(B)):
        return None
    rank, shape = W.constant.ndim - 2, _static(X)
    given = node.attributes
    if list(given.get("kernel_shape") or W.constant.shape[2:]) != list(W.constant.shape[2:]):
        return None
    steps, gaps = tuple(given.get("strides") or (1,) * rank), tuple(given.get("dilations") or (1,) * rank)
    around = _same_pads(W.constant.shape[2:], shape, steps, gaps, given)
    if around is None:
        return None
    weight, bias = tensor_of(W.constant), None if B is None or B.constant is None else tensor_of(B.constant)
    options = (steps, around, gaps, given.get("group", 1))
    plain = partial(_plain_convolution, weight, bias, options, unary)
    candidates: dict[str, Callable[..., Tensor]] = {"plain": plain}
    if upstream.packs_convolutions() and _work(W.constant, shape) > _WORK:
        candidates["packed"] = _packed_convolution(weight, bias, options, unary, shape, with_residual)  # fmt: skip
    if W.constant.ndim == 4 and _is_pointwise(W.constant, options):
        candidates["product"] = partial(_pointwise_product, *_as_matrix(weight, bias), unary)
    chosen = candidates[_chosen_convolution(candidates, shape, W.constant.shape, options, plain, with_residual)]
    if with_residual:
        return lambda X, W, B, residual: chosen(X, residual)
    return lambda X, W, B=None: chosen(X)


def _packed_convolution(
    weight: Tensor, bias: Tensor | None, options: Any, unary: upstream.Unary, shape: Any, with_residual: bool
) -> Callable[..., Tensor]:
    apart = with_residual and unary[0] not in ("none", "relu")
    within = upstream.NONE if apart else unary
    steps, around, gaps, group = options
    convolve = upstream.convolution(
        weight, bias, steps, around, gaps, group, within, shape, with_residual=with_residual
    )  # fmt: skip
    if not apart:
        return convolve
    return lambda x, residual: finished(convolve(x, residual), unary)


def _is_pointwise(weight: Any, options: Any) -> bool:
    """Whether every output point reads the one input point at its place."""
    steps, around, _, group = options
    return weight.shape[2:] == (1, 1) and group == 1 and set(steps) == {1} and not any(around)


def _as_matrix(weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor | None]:
    return weight.reshape(weight.shape[0], weight.shape[1]).t(), bias


def _pointwise_product(
    matrix: Tensor, bias: Tensor | None, unary: upstream.Unary, x: Tensor, residual: Tensor | None = None
) -> Tensor:
    """Channels last, which is how packed kernels leave their results, it is one product."""
    batch, channels, height, width = x.shape
    rows = x.permute(0, 2, 3, 1).reshape(-1, channels)
    y = torch.mm(rows, matrix) if bias is None else torch.addmm(bias, rows, matrix)
    return finished(y.view(batch, height, width, -1).permute(0, 3, 1, 2), unary, residual)


def _plain_convolution(
    weight: Tensor, bias: Tensor | None, options: Any, unary: upstream.Unary, x: Tensor, residual: Tensor | None = None
) -> Tensor:
    steps, around, gaps, group = options
    y = CONVOLUTIONS[weight.ndim - 2](x, weight, bias, steps, around, gaps, group)
    return finished(y, unary, residual)


def _static(given: InputView) -> tuple[int, ...] | None:
    shape = given.shape
    return None if shape is None or not all(isinstance(dim, int) for dim in shape) else tuple(map(int, shape))  # type: ignore[arg-type]


def _same_pads(
    kernel: Sequence[int], shape: tuple[int, ...] | None, steps: Sequence[int], gaps: Sequence[int], given: Any
) -> tuple[int, ...] | None:
    """What goes at either end of each axis; ``None`` where this is unknown, or differs between both ends."""
    auto = given.get("auto_pad", "NOTSET")
    if auto not in ("NOTSET", "VALID") and shape is None:
        return None
    try:
        begin, end = spatial_pads((shape or (0, 0, *kernel))[2:], kernel, steps, gaps, given.get("pads"), auto)
    except InputError:
        return None  # the plain kernel says what is wrong when it runs
    return begin if begin == end else None


def _work(weight: Any, shape: tuple[int, ...] | None) -> float:
    return math.inf if shape is None else weight.size * math.prod(shape[2:]) * shape[0]


def _chosen_convolution(
    candidates: dict[str, Any], shape: Any, kernel: Any, options: Any, plain: Any, with_residual: bool
) -> str:
    if shape is None or len(candidates) == 1:
        return "packed" if "packed" in candidates else "plain"
    form = torch.channels_last if len(shape) == 4 else torch.channels_last_3d  # as packed ones before it leave it
    x = torch.rand(shape).contiguous(memory_format=form)
    arguments = (x, torch.zeros_like(plain(x))) if with_residual else (x,)
    return fastest(f"convolution {shape} {kernel} {options} {with_residual}", candidates, arguments)


def multiplied(
    x: InputView | None, weight: Any, bias: Any, unary: upstream.Unary, *, rows: int | None
) -> Callable[..., Tensor] | None:
    """A kernel for ``unary(x @ weight + bias [+ residual])``; ``None`` for what is no matrix of float32."""
    if weight.ndim != 2 or weight.dtype != _F32 or 0 in weight.shape or x is None or x.dtype != _F32:
        return None
    size = weight.shape[1]
    if bias is not None and (bias.dtype != _F32 or bias.shape not in ((size,), (1, size))):
        return None
    matrix, row = tensor_of(weight), None if bias is None else tensor_of(bias.reshape(-1))
    plain = partial(torch.mm, mat2=matrix) if row is None else partial(torch.addmm, row, mat2=matrix)
    packed: Callable[..., Tensor] | None = None
    if rows is not None and rows > _FEW_ROWS and upstream.packs_matrices():
        candidates: dict[str, Callable[..., Tensor]] = {"plain": plain, "packed": upstream.linear(matrix, row, rows)}
        sample = torch.rand(rows, weight.shape[0])
        if fastest(f"product {rows} {weight.shape} {bias is None}", candidates, (sample,)) == "packed":
            packed = candidates["packed"]

    apply = _IN_PLACE[unary[0]]
    depth, numbers, bare = matrix.shape[0], unary[1], unary[0] == "none"

    def multiply(x: Tensor, *others: Tensor) -> Tensor:
        flat = x if x.ndim == 2 else x.reshape(-1, depth)
        y = packed(flat) if packed is not None and len(flat) == rows else plain(flat)
        if x.ndim != 2:
            y = y.view(*x.shape[:-1], size)
        return y if bare else apply(y, *numbers)

    return multiply


def attended(scale: float, *, transposed: bool) -> Callable[..., Tensor]:
    """Attention with a mask that is added; a row of which all keys are hidden is zero."""

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        key = k.transpose(2, 3) if transposed else k
        return functional.scaled_dot_product_attention(q, key, v, mask, scale=scale)

    return attend
