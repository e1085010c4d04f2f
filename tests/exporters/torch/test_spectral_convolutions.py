"""Convolutions by Fourier transforms: their batch and their sizes vary in the first capture."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

import entrepot as ep


class Spectral(nn.Module):
    """Low frequencies along one axis."""

    def __init__(self):
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.weight = nn.Parameter(torch.randn(2, 3, 4, dtype=torch.complex64, generator=generator))

    def forward(self, x):
        frequencies = torch.fft.rfft(x)
        kept = torch.zeros(x.shape[0], 3, frequencies.shape[-1], dtype=torch.complex64)
        kept[:, :, :4] = torch.einsum("bix,iox->box", frequencies[:, :, :4], self.weight)
        return torch.fft.irfft(kept, n=x.shape[-1])


class Shifted(nn.Module):
    """Low frequencies along two, in the middle of the first."""

    def __init__(self):
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.weight = nn.Parameter(torch.randn(2, 3, 4, 3, dtype=torch.complex64, generator=generator))

    def forward(self, x):
        frequencies = torch.fft.fftshift(torch.fft.rfftn(x, dim=(-2, -1)), dim=-2)
        kept = torch.zeros(x.shape[0], 3, x.shape[-2], x.shape[-1] // 2 + 1, dtype=torch.complex64)
        first = (frequencies.shape[-2] - 4) // 2
        part = (slice(None), slice(None), slice(first, first + 4), slice(None, 3))
        kept[part] = torch.einsum("bixy,ioxy->boxy", frequencies[part], self.weight)
        return torch.fft.irfftn(torch.fft.ifftshift(kept, dim=-2), s=x.shape[-2:], dim=(-2, -1))


class Mixed(nn.Module):
    """All frequencies are mixed as channels of an image of their own."""

    def forward(self, x):
        frequencies = torch.fft.rfft2(x)
        both = torch.cat([frequencies.real, frequencies.imag], dim=1).relu()
        return torch.fft.irfft2(torch.complex(*both.chunk(2, dim=1)), s=x.shape[-2:])


class Cropped(nn.Module):
    """A smaller image of the middle frequencies."""

    def forward(self, x):
        rows, columns = x.shape[-2:]
        edge, side = rows // 4, columns // 4
        frequencies = torch.fft.fftshift(torch.fft.fft2(x, norm="ortho"), dim=(-2, -1))
        kept = frequencies[..., edge : rows - edge, side : columns - side]
        return torch.fft.ifft2(torch.fft.ifftshift(kept, dim=(-2, -1)), norm="ortho").real


@pytest.mark.parametrize(
    ("kind", "sample", "others"),
    [
        (Mixed, (2, 2, 8, 9), [(1, 2, 7, 6), (3, 2, 5, 12)]),
        (Spectral, (2, 2, 20), [(1, 2, 11), (3, 2, 32)]),
        (Cropped, (2, 1, 8, 12), [(1, 3, 5, 7), (3, 1, 16, 3)]),
        (Shifted, (2, 2, 12, 10), [(1, 2, 7, 9), (3, 2, 16, 24)]),
    ],
)
def test_batches_and_sizes_vary_at_once(kind, sample, others):
    module = kind().eval()
    generator = torch.Generator().manual_seed(1)
    model = ep.export(module, torch.randn(sample, generator=generator))
    assert not any(note.startswith("captured") for note in model.notes)
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString())
    for shape in (sample, *others):
        given = torch.randn(shape, generator=generator)
        (found,) = session.run(None, {session.get_inputs()[0].name: given.numpy()})
        with torch.no_grad():
            np.testing.assert_allclose(found, module(given).numpy(), rtol=1e-4, atol=1e-5)
