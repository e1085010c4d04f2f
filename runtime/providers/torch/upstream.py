"""What we use of torch's private operators, each looked for before it is used, with what to do where it is missing.

They are what torch's own compiler calls: ``mkldnn::_convolution_pointwise`` (a convolution by packed weights, with what
follows it) and ``mkl::_mkl_linear`` (a product by a packed matrix). ``tests/runtime/providers/torch/test_upstream.py``
says when one of them changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor

Unary = tuple[str, list[float], str]
"""What follows a convolution: a name, its numbers, and which way it is computed."""

NONE: Unary = ("none", [], "")


def _operator(library: str, name: str, overload: str = "default") -> Callable[..., Any] | None:
    try:
        found: Callable[..., Any] = getattr(getattr(getattr(torch.ops, library), name), overload)
    except (AttributeError, RuntimeError):
        return None
    return found


@cache
def packs_convolutions() -> bool:
    """Whether this build of torch has packed convolutions that work."""
    names = ("_reorder_convolution_weight", "_convolution_pointwise")
    if not torch.backends.mkldnn.is_available() or not all(_operator("mkldnn", name) for name in names):
        return False
    x, w = torch.ones(1, 4, 3, 3), torch.ones(4, 4, 3, 3)
    try:
        convolve = convolution(w, None, (1, 1), (0, 0), (1, 1), 1, NONE, x.shape, with_residual=False)
        return bool(torch.allclose(convolve(x), torch.conv2d(x, w)))
    except (RuntimeError, TypeError):
        return False


def convolution(
    weight: Tensor,
    bias: Tensor | None,
    strides: Sequence[int],
    pads: Sequence[int],
    dilations: Sequence[int],
    group: int,
    unary: Unary,
    shape: Sequence[int] | None,
    *,
    with_residual: bool,
) -> Callable[..., Tensor]:
    """``unary(conv(x) [+ residual])`` by packed weights; ``shape`` is what inputs will probably have.

    After a residual, ``unary`` is ``none`` or ``relu``.
    """
    steps, around, gaps = list(strides), list(pads), list(dilations)
    pack = _operator("mkldnn", "_reorder_convolution_weight")
    assert pack is not None
    packed = pack(weight, around, steps, gaps, group, None if shape is None else list(shape))
    name, numbers, algorithm = unary
    if with_residual:
        binary = _operator("mkldnn", "_convolution_pointwise", "binary")
        assert binary is not None
        given = None if name == "none" else name

        def convolve_and_add(x: Tensor, residual: Tensor) -> Tensor:
            y: Tensor = binary(
                x, residual, packed, bias, around, steps, gaps, group, "add", 1.0, given, numbers, algorithm
            )
            return y

        return convolve_and_add
    pointwise = _operator("mkldnn", "_convolution_pointwise")
    assert pointwise is not None

    def convolve(x: Tensor) -> Tensor:
        y: Tensor = pointwise(x, packed, bias, around, steps, gaps, group, name, numbers, algorithm)
        return y

    return convolve


@cache
def packs_matrices() -> bool:
    """Whether this build of torch has products by packed matrices that work."""
    names = ("_mkl_reorder_linear_weight", "_mkl_linear")
    if not torch.backends.mkl.is_available() or not all(_operator("mkl", name) for name in names):
        return False
    x, w = torch.ones(3, 4), torch.ones(4, 5)
    try:
        return bool(torch.allclose(linear(w, None, 3)(x), x @ w))
    except (RuntimeError, TypeError):
        return False


def linear(weight: Tensor, bias: Tensor | None, rows: int) -> Callable[[Tensor], Tensor]:
    """``x @ weight + bias`` for matrices of so many rows, of which ``weight`` is packed."""
    pack, product = _operator("mkl", "_mkl_reorder_linear_weight"), _operator("mkl", "_mkl_linear")
    assert pack is not None
    assert product is not None
    transposed = weight.t()
    packed = pack(transposed, rows)

    def multiply(x: Tensor) -> Tensor:
        y: Tensor = product(x, packed, transposed, bias, rows)
        return y

    return multiply
