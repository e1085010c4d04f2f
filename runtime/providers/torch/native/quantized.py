"""Products of 8-bit integers: exact in float64, which torch's libraries know on every device."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from entrepot.runtime.kernels.cast import convert
from entrepot.runtime.providers.torch.backend import TorchBackend
from entrepot.runtime.providers.torch.dtypes import NUMPY
from entrepot.runtime.providers.torch.native.convolution import conv
from entrepot.runtime.providers.torch.table import native


def _less_zero(x: Tensor, zero_point: Tensor | None, channels: tuple[int, ...]) -> Tensor:
    """``x`` less its zero point, in float64; several zero points take the shape ``channels``, such as (-1, 1)."""
    wide = x.to(torch.float64)
    if zero_point is None:
        return wide
    zero = single(zero_point).to(torch.float64)
    return wide - (zero.reshape(channels) if zero.ndim == 1 else zero)


def single(parameter: Tensor) -> Tensor:
    """A scale or zero point; one that is a list of one number is that number, and adds no axis to what it meets."""
    return parameter.reshape(()) if parameter.shape == (1,) else parameter


@native("MatMulInteger", 10)
def matmul_integer(
    A: Tensor, B: Tensor, a_zero_point: Tensor | None = None, b_zero_point: Tensor | None = None
) -> Tensor:
    """The exact product of 8-bit integers less their zero points, in int32."""
    return torch.matmul(_less_zero(A, a_zero_point, (-1, 1)), _less_zero(B, b_zero_point, (-1,))).to(torch.int32)


@native("ConvInteger", 10)
def conv_integer(
    x: Tensor,
    w: Tensor,
    x_zero_point: Tensor | None = None,
    w_zero_point: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """The exact convolution of 8-bit integers less their zero points, in int32; padding counts as zero."""
    weights = _less_zero(w, w_zero_point, (-1, *[1] * (w.ndim - 1)))
    total = conv(
        _less_zero(x, x_zero_point, (-1,)), weights, auto_pad=auto_pad, dilations=dilations, group=group,
        kernel_shape=kernel_shape, pads=pads, strides=strides,
    )  # fmt: skip
    return torch.round(total).to(torch.int32)


@native("QLinearConv", 10)
def qlinear_conv(
    x: Tensor,
    x_scale: Tensor,
    x_zero_point: Tensor,
    w: Tensor,
    w_scale: Tensor,
    w_zero_point: Tensor,
    y_scale: Tensor,
    y_zero_point: Tensor,
    B: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """ConvInteger plus an int32 bias, brought to the output's scale, rounded half to even and saturated."""
    total = conv_integer(
        x, w, x_zero_point, w_zero_point, auto_pad=auto_pad, dilations=dilations, group=group,
        kernel_shape=kernel_shape, pads=pads, strides=strides,
    )  # fmt: skip
    channel = (-1, *[1] * (x.ndim - 2))
    if B is not None:
        total = total + B.reshape(channel)
    factor = x_scale * (w_scale.reshape(channel) if w_scale.numel() > 1 else w_scale.reshape(())) / y_scale
    return _requantized(total, factor, y_zero_point)


@native("QLinearMatMul", 21)
def qlinear_matmul(
    a: Tensor,
    a_scale: Tensor,
    a_zero_point: Tensor,
    b: Tensor,
    b_scale: Tensor,
    b_zero_point: Tensor,
    y_scale: Tensor,
    y_zero_point: Tensor,
) -> Tensor:
    """The product of two quantised matrices, quantised again."""
    total = torch.matmul(_less_zero(a, a_zero_point, (-1, 1)), _less_zero(b, b_zero_point, (-1,)))
    scale_a, scale_b, scale_y = (single(scale).to(torch.float32) for scale in (a_scale, b_scale, y_scale))
    rows = scale_a.unsqueeze(1) if scale_a.ndim == 1 else scale_a
    return _requantized(total, rows * scale_b / scale_y, single(y_zero_point))


def _requantized(total: Tensor, factor: Tensor, zero_point: Tensor) -> Tensor:
    """``total * factor + zero_point`` in the zero point's type: rounded half to even and saturated."""
    kind = zero_point.dtype
    scaled = total.to(torch.float64) * factor.to(torch.float32).to(torch.float64)
    if kind.is_floating_point:  # float8 rounds as it converts, and saturates to its largest value
        wide = (scaled + zero_point.to(torch.float64)).to(torch.float32)
        return convert(TorchBackend(total.device), wide, NUMPY[kind])
    limits = torch.iinfo(kind)
    return (torch.round(scaled) + zero_point.to(torch.float64)).clamp(limits.min, limits.max).to(kind)
