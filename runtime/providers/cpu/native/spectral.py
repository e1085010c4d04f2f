"""Fourier transforms, in the input's own precision (float32 for the narrow floats)."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir

from entrepot.ir.errors import InputError
from entrepot.runtime import room
from entrepot.runtime.kernels.precision import accumulation_dtype
from entrepot.runtime.providers.cpu.table import native

Array: TypeAlias = np.ndarray[Any, Any]


@native("DFT", 20)
def dft(
    input: Array, dft_length: Array | None = None, axis: Array | None = None, *, inverse: int = 0, onesided: int = 0
) -> Array:
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
    room.claim((n, input.size // max(input.shape[along], 1)), 16)
    signal = _numbers(input)
    if inverse and onesided:
        return np.fft.irfft(signal, n, along)[..., None].astype(input.dtype)
    if onesided and np.iscomplexobj(signal):
        raise InputError("a forward DFT with onesided=1 takes a real input")
    transform = np.fft.ifft if inverse else np.fft.rfft if onesided else np.fft.fft
    return _pairs(transform(signal, n, along), input.dtype)


def _numbers(x: Array) -> Array:
    """(..., 1) as reals, (..., 2) as complex numbers."""
    wide = x.astype(accumulation_dtype(x.dtype), copy=False)
    if x.shape[-1] == 1:
        return wide[..., 0]
    if x.shape[-1] != 2:
        raise InputError(f"the last axis holds 1 or 2 values, a real or a complex number, not {x.shape[-1]}")
    return wide[..., 0] + 1j * wide[..., 1]  # a Python scalar: float32 gives complex64


def _pairs(x: Array, dtype: np.dtype[Any]) -> Array:
    return np.stack([x.real, x.imag], axis=-1).astype(dtype)


@native("STFT", 17)
def stft(
    signal: Array,
    frame_step: Array,
    window: Array | None = None,
    frame_length: Array | None = None,
    *,
    onesided: int = 1,
) -> Array:
    """The transforms of overlapping windowed frames of a signal: [batch, time, 1 or 2], or only [batch, time]."""
    numbers = signal.astype(accumulation_dtype(signal.dtype), copy=False) if signal.ndim == 2 else _numbers(signal)
    length = numbers.shape[1] if window is None else window.shape[0]
    length = length if frame_length is None else int(frame_length.item())
    if window is not None and window.shape != (length,):
        raise InputError(f"a window of shape {window.shape} does not fit frame_length={length}")
    if (step := int(frame_step.item())) < 1:
        raise InputError(f"STFT: frame_step is {step}, expected a positive number")
    if length > numbers.shape[1]:
        raise InputError(f"frames of {length} exceed a signal of {numbers.shape[1]}")
    frames = np.lib.stride_tricks.sliding_window_view(numbers, length, axis=1)[:, ::step]
    room.claim(frames.shape, 16)
    if window is not None:
        frames = frames * window.astype(accumulation_dtype(window.dtype))
    if onesided and np.iscomplexobj(frames):
        raise InputError("STFT with onesided=1 takes a real signal")
    return _pairs((np.fft.rfft if onesided else np.fft.fft)(frames), signal.dtype)


@native("MelWeightMatrix", 17)
def mel_weight_matrix(
    num_mel_bins: Array,
    dft_length: Array,
    sample_rate: Array,
    lower_edge_hertz: Array,
    upper_edge_hertz: Array,
    *,
    output_datatype: int = 1,
) -> Array:
    """Triangles, evenly spaced in mel, over the bins of a one-sided spectrum."""
    bands, length = int(num_mel_bins.item()), int(dft_length.item())
    low, high = (2595 * np.log10(1 + float(edge.item()) / 700) for edge in (lower_edge_hertz, upper_edge_hertz))
    room.claim((length // 2 + 1, bands + 2))
    # the schema's reference divides by bands + 2 and rounds down to bins; both are part of the result
    mels = np.arange(bands + 2) * ((high - low) / (bands + 2)) + low
    edges = ((length + 1) * (700 * (10 ** (mels / 2595) - 1)) // int(sample_rate.item())).astype(np.int64)
    matrix = np.zeros((length // 2 + 1, bands))
    for band, (left, centre, right) in enumerate(zip(edges, edges[1:], edges[2:], strict=False)):
        rising = np.arange(left, centre + 1)
        matrix[rising, band] = 1.0 if centre == left else (rising - left) / (centre - left)
        falling = np.arange(centre, right)
        matrix[falling, band] = (right - falling) / max(right - centre, 1)
    return matrix.astype(ir.DataType(output_datatype).numpy())
