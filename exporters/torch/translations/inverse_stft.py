"""The inverse short-time Fourier transform to a length that varies, which torch (2.13) takes for a constant."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere


def istft(
    input: torch.Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: torch.Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: Any = None,
    return_complex: bool = False,
) -> torch.Tensor:
    """Waveforms [..., length] from spectra [..., frequency, frame]."""
    if length is None or isinstance(length, int) or return_complex:
        how = (hop_length, win_length, window, center, normalized, onesided, length, return_complex)
        return torch.istft(input, n_fft, *how)
    hop, width = hop_length or n_fft // 4, win_length or n_fft
    taper = torch.ones(width) if window is None else window
    taper = F.pad(taper, ((n_fft - width) // 2, n_fft - width - (n_fft - width) // 2))
    frames = torch.fft.irfft(_half(input, onesided).transpose(-1, -2), n_fft, norm="ortho" if normalized else None)
    flat = (frames * taper).reshape(-1, *frames.shape[-2:]).transpose(1, 2)
    weights = taper.square().reshape(1, n_fft, 1).expand(1, n_fft, flat.shape[2])
    place = torch.arange(length) + (n_fft // 2 if center else 0)
    size = n_fft + hop * (flat.shape[2] - 1)
    inside = place.clamp(max=size - 1)
    wave = _added(flat, hop, inside) / _added(weights, hop, inside)
    return torch.where(place < size, wave, torch.zeros(())).reshape(*input.shape[:-2], length)


def _half(spectrum: torch.Tensor, onesided: bool | None) -> torch.Tensor:
    """The frequencies that are not negative."""
    return spectrum[..., : spectrum.shape[-2] // 2 + 1, :] if onesided is False else spectrum


def _added(frames: torch.Tensor, hop: int, place: torch.Tensor) -> torch.Tensor:
    """Frames [batch, n_fft, frame] added up where they overlap, at some places."""
    size = frames.shape[1] + hop * (frames.shape[2] - 1)
    whole = F.fold(frames, (1, size), (1, frames.shape[1]), stride=(1, hop))
    return whole.flatten(1).index_select(1, place)


REPLACEMENTS: dict[Any, Any] = {torch.istft: istft, torch.Tensor.istft: istft}
