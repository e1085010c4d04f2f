"""Convolutions of torch, behind padding of our own where it takes none that differs between the ends of an axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from entrepot.ir.errors import InputError
from entrepot.runtime.kernels import convolution as shared
from entrepot.runtime.kernels.window import Window, transposed_window
from entrepot.runtime.providers.torch.backend import TorchBackend
from entrepot.runtime.providers.torch.moving import claim
from entrepot.runtime.providers.torch.table import native
from entrepot.runtime.providers.torch.windows import padded, spatial_pads

_WIDE = 64
"""Padding beyond which a result may be much larger than its input."""

CONVOLUTIONS: dict[int, Callable[..., Tensor]] = {1: torch.conv1d, 2: torch.conv2d, 3: torch.conv3d}
_TRANSPOSED: dict[int, Callable[..., Tensor]] = {
    1: functional.conv_transpose1d, 2: functional.conv_transpose2d, 3: functional.conv_transpose3d
}  # fmt: skip


@native("Conv", 22)
def conv(
    X: Tensor,
    W: Tensor,
    B: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """The sum of products of W with each window of X."""
    rank = X.ndim - 2
    if rank not in CONVOLUTIONS or 0 in W.shape:  # torch takes no weights of nothing
        return shared.conv(
            TorchBackend(X.device), X, W, B, auto_pad=auto_pad, dilations=dilations, group=group,
            kernel_shape=kernel_shape, pads=pads, strides=strides,
        )  # fmt: skip
    check_kernel(kernel_shape, W)
    steps, gaps = tuple(strides or (1,) * rank), tuple(dilations or (1,) * rank)
    begin, end = spatial_pads(X.shape[2:], W.shape[2:], steps, gaps, pads, auto_pad)
    if max((*begin, *end)) > _WIDE:
        claim((X.shape[0], W.shape[0], *map(sum, zip(X.shape[2:], begin, end, strict=True))), X.element_size())
    x, around = padded(X, begin, end, 0)
    return CONVOLUTIONS[rank](x, W, B, steps, around, gaps, group)


def check_kernel(kernel_shape: Sequence[int] | None, W: Tensor) -> None:
    """Refuse weights of another shape than the node says.

    Raises:
        InputError: They are.
    """
    if kernel_shape and tuple(kernel_shape) != tuple(W.shape[2:]):
        raise InputError(f"kernel_shape {list(kernel_shape)} disagrees with W of shape {tuple(W.shape)}")


@native("ConvTranspose", 22)
def conv_transpose(
    X: Tensor,
    W: Tensor,
    B: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    output_padding: Sequence[int] | None = None,
    output_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """The gradient of Conv by its input: every input point adds a scaled W to the output."""
    rank = X.ndim - 2
    if rank not in _TRANSPOSED or 0 in W.shape or 0 in X.shape:  # torch takes few of nothing
        return shared.conv_transpose(
            TorchBackend(X.device), X, W, B, auto_pad=auto_pad, dilations=dilations, group=group,
            kernel_shape=kernel_shape, output_padding=output_padding, output_shape=output_shape, pads=pads,
            strides=strides,
        )  # fmt: skip
    check_kernel(kernel_shape, W)
    steps, gaps = tuple(strides or (1,) * rank), tuple(dilations or (1,) * rank)
    around = tuple(pads or (0,) * 2 * rank)
    extra = tuple(output_padding or (0,) * rank)
    sizes = zip(X.shape[2:], steps, W.shape[2:], gaps, extra, strict=True)
    reach = [(n - 1) * step + (k - 1) * gap + 1 + more for n, step, k, gap, more in sizes]
    claim((X.shape[0], W.shape[1] * group, *reach), X.element_size())
    if auto_pad == "NOTSET" and not output_shape and _is_plain(around, extra, steps, gaps, rank):
        return _TRANSPOSED[rank](X, W, B, steps, around[:rank], extra, group, gaps)
    win = transposed_window(X.shape[2:], W.shape[2:], strides, dilations, pads, auto_pad, output_padding, output_shape)
    y = _cropped(_TRANSPOSED[rank](X, W, None, steps, 0, 0, group, gaps), win)
    return y if B is None else y + B.reshape(-1, *[1] * rank)


def _is_plain(around: Sequence[int], extra: Sequence[int], steps: Any, gaps: Any, rank: int) -> bool:
    """Whether torch takes these: the same at both ends, and less added behind than a step or a gap is long."""
    few = all(more < max(step, gap) for more, step, gap in zip(extra, steps, gaps, strict=True))
    return few and around[:rank] == around[rank:]


def _cropped(y: Tensor, win: Window) -> Tensor:
    """What the window says of the whole result; it may reach beyond what any input point touches."""
    pads: list[int] = []
    for size, begin, wanted in zip(y.shape[2:], win.begin, win.source, strict=True):
        pads = [-begin, begin + wanted - size, *pads]  # torch counts axes from the last one, and crops by less than 0
    return torch.constant_pad_nd(y, pads)
