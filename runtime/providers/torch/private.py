"""Operators that torch keeps for its own compiler: products and convolutions whose weights are packed once.

They may go or change with any release, so each is tried before it is used, on numbers whose results are exact. What is
not as expected counts as missing, and the plain kernels of torch run instead.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

Packed = Any
"""Weights in oneDNN's own layout."""

Post = tuple[str, tuple[float, ...]]
"""What is done to a result as it is written: ``("hardtanh", (0.0, 6.0))``; NaN may be lost."""

AFTER_SUM: tuple[Post, ...] = (("relu", ()),)
"""What can follow a sum."""

_ERRORS = (AttributeError, RuntimeError, TypeError, ValueError)


class Convolution(NamedTuple):
    """Convolutions of two axes in float32 on the host, by weights that are packed.

    Attributes:
        pack: ``(weights, pads, strides, dilations, group, shape of x)``: for any shape, and fastest for this one.
        run: ``(x, packed, bias, pads, strides, dilations, group, post)``.
        run_and_add: ``(x, residual, packed, ..., post)``: of the result's shape.
        run_onto: The same, over the memory of ``residual``, which is returned.
    """

    pack: Callable[..., Packed]
    run: Callable[..., Tensor]
    run_and_add: Callable[..., Tensor]
    run_onto: Callable[..., Tensor]


class Linear(NamedTuple):
    """``x @ weights.T + bias`` in float32 on the host, by weights that are packed.

    Attributes:
        pack: ``(weights, rows)``: of shape (out, in).
        run: ``(x, packed, weights, bias, rows)``: for this number of rows, or any where it is 0.
    """

    pack: Callable[[Tensor, int], Packed]
    run: Callable[..., Tensor]


@cache
def convolution() -> Convolution | None:
    """OneDNN's, if this torch has it."""
    return _tried(_convolution, _convolves)


@cache
def linear() -> Linear | None:
    """OneDNN's, for any number of rows, if this torch has it."""
    return _tried(_linear, _multiplies)


@cache
def linear_of_rows() -> Linear | None:
    """MKL's, for a number of rows that is known when weights are packed, if this torch has it."""
    return _tried(_linear_of_rows, _multiplies)


def memory_of(packed: Packed) -> tuple[int, int] | None:
    """Where packed weights begin, and their bytes; ``None`` where this torch does not say."""
    try:
        return int(torch.ops.mkldnn.data_ptr(packed)), int(torch.ops.mkldnn._nbytes(packed))
    except _ERRORS:
        return None


def _tried(make: Callable[[], Any], works: Callable[[Any], bool]) -> Any:
    try:
        with torch.inference_mode():
            made = make()
            return made if works(made) else None
    except _ERRORS:
        return None


def _convolution() -> Convolution:
    pack = torch.ops.mkldnn._reorder_convolution_weight.default
    plain = torch.ops.mkldnn._convolution_pointwise.default
    added = torch.ops.mkldnn._convolution_pointwise.binary
    onto = torch.ops.mkldnn._convolution_pointwise_.binary

    def run(x: Tensor, packed: Packed, bias: Tensor | None, *rest: Any) -> Tensor:
        *geometry, post = rest
        name, numbers = post or ("none", ())
        return plain(x, packed, bias, *geometry, name, list(numbers), None)

    def run_and_add(x: Tensor, residual: Tensor, packed: Packed, bias: Tensor | None, *rest: Any) -> Tensor:
        *geometry, post = rest
        name, numbers = post or (None, ())
        return added(x, residual, packed, bias, *geometry, "add", 1.0, name, list(numbers), None)

    def run_onto(x: Tensor, residual: Tensor, packed: Packed, bias: Tensor | None, *rest: Any) -> Tensor:
        *geometry, post = rest
        name, numbers = post or (None, ())
        return onto(residual, x, packed, bias, *geometry, "add", 1.0, name, list(numbers), None)

    return Convolution(pack, run, run_and_add, run_onto)


def _linear() -> Linear:
    pack = torch.ops.mkldnn._reorder_linear_weight.default
    plain = torch.ops.mkldnn._linear_pointwise.default

    def run(x: Tensor, packed: Packed, weights: Tensor, bias: Tensor | None, rows: int) -> Tensor:
        return plain(x, packed, bias, "none", [], "")

    return Linear(lambda weights, rows: pack(weights, None), run)


def _linear_of_rows() -> Linear:
    return Linear(torch.ops.mkl._mkl_reorder_linear_weight.default, torch.ops.mkl._mkl_linear.default)


def _whole_numbers(*shape: int) -> Tensor:
    """Small ones, so that sums of products are exact."""
    return torch.arange(torch.Size(shape).numel(), dtype=torch.float32).remainder(7).sub(3).reshape(shape)


def _convolves(made: Convolution) -> bool:
    x, weights, bias = _whole_numbers(2, 6, 9, 8), _whole_numbers(4, 3, 3, 3), _whole_numbers(4)
    geometry = ([1, 0], [2, 1], [1, 2], 2)
    wanted = torch.conv2d(x, weights, bias, *_by_name(geometry))
    arguments = (made.pack(weights, *geometry, list(x.shape)), bias, *geometry)
    y, clipped = made.run(x, *arguments, None), made.run(x, *arguments, ("hardtanh", (-2.0, 3.0)))
    if not torch.equal(y, wanted) or not torch.equal(clipped, wanted.clamp(-2.0, 3.0)):
        return False
    sums = [add(x, y.clone(), *arguments, None) for add in (made.run_and_add, made.run_onto)]
    ended = [add(x, y.clone(), *arguments, AFTER_SUM[0]) for add in (made.run_and_add, made.run_onto)]
    return all(torch.equal(each, wanted * 2) for each in sums) and all(
        torch.equal(each, (wanted * 2).relu()) for each in ended
    )


def _by_name(geometry: tuple[Any, ...]) -> tuple[Any, ...]:
    """In the order of torch's public function."""
    pads, strides, dilations, group = geometry
    return strides, pads, dilations, group


def _multiplies(made: Linear) -> bool:
    x, weights, bias = _whole_numbers(3, 4, 5), _whole_numbers(6, 5), _whole_numbers(6)
    y = made.run(x, made.pack(weights, 12), weights, bias, 12)
    return torch.equal(y, torch.nn.functional.linear(x, weights, bias))
