"""Pools of torch, where they slide the same window; the shared meanings do the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from entrepot.ir.errors import InputError
from entrepot.runtime.kernels import pooling as shared
from entrepot.runtime.kernels.axes import is_shape
from entrepot.runtime.kernels.window import fitted, transposed_window
from entrepot.runtime.providers.torch.backend import TorchBackend, lowest
from entrepot.runtime.providers.torch.moving import claim
from entrepot.runtime.providers.torch.table import native
from entrepot.runtime.providers.torch.windows import spatial_pads, widened

_LARGEST: dict[int, Callable[..., Tensor]] = {
    1: functional.max_pool1d, 2: functional.max_pool2d, 3: functional.max_pool3d
}  # fmt: skip
_PLACES: dict[int, Callable[..., tuple[Tensor, Tensor]]] = {
    2: torch.ops.aten.max_pool2d_with_indices,
    3: torch.ops.aten.max_pool3d_with_indices,
}
_MEAN: dict[int, Callable[..., Tensor]] = {
    1: functional.avg_pool1d, 2: functional.avg_pool2d, 3: functional.avg_pool3d
}  # fmt: skip


@native("MaxPool", 22)
def max_pool(
    X: Tensor,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[int] | None = None,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None = None,
    storage_order: int = 0,
    strides: Sequence[int] | None = None,
    n_outputs: int = 1,
) -> tuple[Tensor, ...]:
    """The largest value of each window; also where in the whole input it is."""
    rank, kernel = X.ndim - 2, tuple(kernel_shape)
    steps, gaps = fitted("strides", strides, rank), fitted("dilations", dilations, rank)
    if rank in _LARGEST and X.is_floating_point() and len(kernel) == rank and 0 not in X.shape[1:]:
        begin, end = spatial_pads(X.shape[2:], kernel, steps, gaps, pads, auto_pad, ceil_mode)
        fits = begin == end and all(2 * width <= size for width, size in zip(begin, kernel, strict=True))
        if n_outputs == 1 and (fits or not ceil_mode):
            x, around = (X, begin) if fits else (widened(X, begin, end, lowest(X.dtype)), 0)
            return (_LARGEST[rank](x, kernel, steps, around, gaps, bool(ceil_mode)),)
        if n_outputs > 1 and fits and not storage_order and rank in _PLACES:
            y, places = _PLACES[rank](X, kernel, steps, begin, gaps, bool(ceil_mode))
            return y, places + _first_places(X)
    return shared.max_pool(
        TorchBackend(X.device), X, auto_pad=auto_pad, ceil_mode=ceil_mode, dilations=dilations,
        kernel_shape=kernel_shape, pads=pads, storage_order=storage_order, strides=strides, n_outputs=n_outputs,
    )  # fmt: skip


def _first_places(x: Tensor) -> Tensor:
    """Where each plane begins in the whole input."""
    planes = torch.arange(x.shape[0] * x.shape[1], device=x.device) * x[0:1, 0:1].numel()
    return planes.reshape(x.shape[0], x.shape[1], *[1] * (x.ndim - 2))


@native("AveragePool", 22)
def average_pool(
    X: Tensor,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: Sequence[int] | None = None,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """The mean of each window, over its points in the input, or in the padded input."""
    rank, kernel = X.ndim - 2, tuple(kernel_shape)
    steps = fitted("strides", strides, rank)
    if rank in _MEAN and max(dilations or (1,)) == 1 and len(kernel) == rank and 0 not in X.shape[1:]:
        begin, end = spatial_pads(X.shape[2:], kernel, steps, (1,) * rank, pads, auto_pad, ceil_mode)
        # in three dimensions torch wants windows that the input holds without its padding
        held = rank < 3 or all(size <= there for size, there in zip(kernel, X.shape[2:], strict=True))
        if held and begin == end and all(2 * width <= size for width, size in zip(begin, kernel, strict=True)):
            return _MEAN[rank](X, kernel, steps, begin, bool(ceil_mode), bool(count_include_pad))
        if count_include_pad and not ceil_mode:
            return _MEAN[rank](widened(X, begin, end, 0), kernel, steps)
    return shared.average_pool(
        TorchBackend(X.device), X, auto_pad=auto_pad, ceil_mode=ceil_mode, count_include_pad=count_include_pad,
        dilations=dilations, kernel_shape=kernel_shape, pads=pads, strides=strides,
    )  # fmt: skip


@native("GlobalAveragePool", 22)
def global_average_pool(X: Tensor) -> Tensor:
    """The mean over all spatial axes."""
    return torch.mean(X, tuple(range(2, X.ndim)), keepdim=True)


@native("MaxUnpool", 22)
def max_unpool(
    X: Tensor,
    I: Tensor,  # noqa: E741
    output_shape: np.ndarray | None = None,
    *,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """Put each maximum back where MaxPool found it, zeros elsewhere."""
    if not is_shape(X.shape, I.shape):
        raise InputError(f"MaxUnpool: indices of shape {tuple(I.shape)} for values of shape {tuple(X.shape)}")
    win = transposed_window(X.shape[2:], tuple(kernel_shape), strides, None, pads)
    pooled = (*X.shape[:2], *win.source)
    shape = pooled if output_shape is None else tuple(output_shape.tolist())
    if len(shape) != X.ndim:
        raise InputError(f"MaxUnpool: an output of shape {shape} has another rank than X of shape {tuple(X.shape)}")
    claim(pooled, X.element_size())
    claim(shape, X.element_size())
    y = torch.zeros(pooled, dtype=X.dtype, device=X.device)
    y = y.reshape(-1).scatter(0, I.reshape(-1), X.reshape(-1)).reshape(pooled)
    return y if shape == pooled else _placed(y, shape)


def _placed(y: Tensor, shape: tuple[int, ...]) -> Tensor:
    """At the beginning of something larger, by places in the smaller one."""
    flat = [0] * (2 * y.ndim)
    for axis, (size, wanted) in enumerate(zip(y.shape, shape, strict=True)):
        flat[2 * (y.ndim - 1 - axis) + 1] = wanted - size
    return torch.constant_pad_nd(y, flat)
