"""Fourier transforms and determinants, in the input's own precision (float32 for the narrow floats)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from entrepot.ir.errors import InputError
from entrepot.runtime.providers.torch.moving import claim
from entrepot.runtime.providers.torch.table import native

HostArray = np.ndarray[Any, Any]


@native("DFT", 20)
def dft(
    input: Tensor,
    dft_length: HostArray | None = None,
    axis: HostArray | None = None,
    *,
    inverse: int = 0,
    onesided: int = 0,
) -> Tensor:
    """The discrete Fourier transform along one axis, or its inverse; numbers are pairs in the last axis."""
    along = -2 if axis is None else int(axis.item())
    along = along % input.ndim if along >= -input.ndim else along
    if not 0 <= along < input.ndim - 1:
        raise InputError(
            f"DFT cannot run along axis {axis} of an input of rank {input.ndim}: the last axis holds pairs"
        )
    n = input.shape[along] if dft_length is None else int(dft_length.item())
    if dft_length is None and inverse and onesided:
        n = 2 * (n - 1)
    claim((n, input.numel() // max(input.shape[along], 1)), 16)
    signal = _numbers(input)
    if inverse and onesided:
        return _of_some(torch.fft.irfft, signal, n, along).unsqueeze(-1).to(input.dtype)
    if onesided and signal.is_complex():
        raise InputError("a forward DFT with onesided=1 takes a real input")
    transform = torch.fft.ifft if inverse else torch.fft.rfft if onesided else torch.fft.fft
    return _pairs(_of_some(transform, signal, n, along), input.dtype)


def _of_some(transform: Callable[..., Tensor], signal: Tensor, n: int, along: int) -> Tensor:
    """The transform, which torch has of no empty signal: padding alone makes zeros."""
    if n < 1 or 0 not in signal.shape:
        return transform(signal, n, along)
    one = transform(signal.new_zeros(n), n, 0)
    return one.new_zeros((*signal.shape[:along], one.shape[0], *signal.shape[along + 1 :]))


def _numbers(x: Tensor) -> Tensor:
    """(..., 1) as reals, (..., 2) as complex numbers."""
    wide = _wide(x)
    if x.shape[-1] == 1:
        return wide[..., 0]
    if x.shape[-1] != 2:
        raise InputError(f"the last axis holds 1 or 2 values, a real or a complex number, not {x.shape[-1]}")
    return torch.complex(wide[..., 0], wide[..., 1])


def _wide(x: Tensor) -> Tensor:
    return x if x.dtype is torch.float64 else x.to(torch.float32)


def _pairs(x: Tensor, dtype: torch.dtype) -> Tensor:
    return torch.view_as_real(x.resolve_conj()).to(dtype)


@native("STFT", 17)
def stft(
    signal: Tensor,
    frame_step: HostArray,
    window: Tensor | None = None,
    frame_length: HostArray | None = None,
    *,
    onesided: int = 1,
) -> Tensor:
    """The transforms of overlapping windowed frames of a signal: [batch, time, 1 or 2], or only [batch, time]."""
    numbers = _wide(signal) if signal.ndim == 2 else _numbers(signal)
    length = numbers.shape[1] if window is None else window.shape[0]
    length = length if frame_length is None else int(frame_length.item())
    if window is not None and tuple(window.shape) != (length,):
        raise InputError(f"a window of shape {tuple(window.shape)} does not fit frame_length={length}")
    if (step := int(frame_step.item())) < 1:
        raise InputError(f"STFT: frame_step is {step}, expected a positive number")
    if length > numbers.shape[1]:
        raise InputError(f"frames of {length} exceed a signal of {numbers.shape[1]}")
    frames = numbers.unfold(1, length, step)
    claim(tuple(frames.shape), 16)
    if window is not None:
        frames = frames * _wide(window)
    if onesided and frames.is_complex():
        raise InputError("STFT with onesided=1 takes a real signal")
    return _pairs(_of_some(torch.fft.rfft if onesided else torch.fft.fft, frames, length, 2), signal.dtype)


@native("Det", 22)
def det(X: Tensor) -> Tensor:
    """The determinant of each matrix in the last two axes."""
    return torch.linalg.det(_wide(X)).to(X.dtype)
