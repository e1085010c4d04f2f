"""Complex numbers inside of a model: rotary embeddings, Fourier operators, spectrograms and back."""

from __future__ import annotations

import torch
from torch import Tensor, nn, randn

from tests.export_cases.case import case


class RotaryPairs(nn.Module):
    """Llama's first rotary embedding."""

    def __init__(self, width: int = 8, most: int = 32) -> None:
        super().__init__()
        angle = torch.outer(torch.arange(most).float(), 1 / 100 ** (torch.arange(0, width, 2) / width))
        self.register_buffer("turn", torch.polar(torch.ones_like(angle), angle))

    def forward(self, q: Tensor) -> Tensor:
        pairs = torch.view_as_complex(q.float().reshape(*q.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * self.turn[: q.shape[1]]).flatten(-2).type_as(q)


@case("q.0", "q.1")
def rotary_by_complex_numbers():
    return RotaryPairs(), (randn(2, 5, 8),), (randn(3, 9, 8),)


class FourierLayer(nn.Module):
    """A Fourier neural operator's layer: low modes are mixed by complex weights."""

    def __init__(self, modes: int = 3) -> None:
        super().__init__()
        self.modes = modes
        self.weight = nn.Parameter(torch.randn(4, 4, modes, dtype=torch.cfloat) / 4)

    def forward(self, x: Tensor) -> Tensor:
        spectrum = torch.fft.rfft(x)
        out = torch.zeros(x.shape[0], 4, x.shape[-1] // 2 + 1, dtype=torch.cfloat)
        out[:, :, : self.modes] = torch.einsum("bix,iox->box", spectrum[:, :, : self.modes], self.weight)
        return torch.fft.irfft(out, n=x.shape[-1]) + x


@case("x.0", "x.2")
def fourier_neural_operator():
    return FourierLayer(), (randn(2, 4, 10),), (randn(3, 4, 16),)


class FourierLayer2d(nn.Module):
    """The same in two dimensions, both corners of the spectrum."""

    def __init__(self, modes: int = 2) -> None:
        super().__init__()
        self.modes = modes
        self.low, self.high = (nn.Parameter(torch.randn(3, 3, modes, modes, dtype=torch.cfloat)) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        m, spectrum = self.modes, torch.fft.rfft2(x)
        out = torch.zeros_like(spectrum)
        out[:, :, :m, :m] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, :m, :m], self.low)
        out[:, :, -m:, :m] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, -m:, :m], self.high)
        return torch.fft.irfft2(out, s=x.shape[-2:])


@case("x.0", "x.2", "x.3")
def fourier_neural_operator_2d():
    return FourierLayer2d(), (randn(2, 3, 6, 8),), (randn(1, 3, 10, 12),)


class FNet(nn.Module):
    """Mixing tokens by the real part of a Fourier transform."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real


@case("x.0", "x.1")
def fourier_mixing():
    return FNet(), (randn(2, 5, 4),), (randn(3, 8, 4),)


class Denoiser(nn.Module):
    """A mask on a spectrogram, and back to a waveform."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(16))
        self.mask = nn.Conv1d(9, 9, 3, padding=1)

    def forward(self, wave: Tensor) -> Tensor:
        spectrum = torch.stft(wave, 16, 8, window=self.window, return_complex=True)
        spectrum = spectrum * torch.sigmoid(self.mask(spectrum.abs()))
        return torch.istft(spectrum, 16, 8, window=self.window, length=wave.shape[-1])


@case("wave.0", "wave.1")
def spectrogram_mask_and_back():
    return Denoiser(), (randn(2, 64),), (randn(3, 96),)


class Phase(nn.Module):
    """Magnitude and phase by ``angle`` and ``polar``."""

    def forward(self, x: Tensor) -> Tensor:
        spectrum = torch.fft.rfft(x)
        magnitude, phase = spectrum.abs(), spectrum.angle()
        return torch.fft.irfft(torch.polar(magnitude.sqrt(), phase), n=x.shape[-1])


@case("x.0", "x.1")
def magnitude_and_phase():
    return Phase(), (randn(2, 8),), (randn(3, 12),)


class ComplexLinear(nn.Module):
    """A network on complex numbers, real at both ends."""

    def __init__(self) -> None:
        super().__init__()
        self.w, self.b = (
            nn.Parameter(torch.randn(4, 3, dtype=torch.cfloat)),
            nn.Parameter(torch.randn(3, dtype=torch.cfloat)),
        )

    def forward(self, real: Tensor, imaginary: Tensor) -> tuple[Tensor, Tensor]:
        z = torch.complex(real, imaginary) @ self.w + self.b
        z = z * z.conj() / (1 + z.abs())
        return z.real, (z.exp() * 1j).imag


@case("real.0", "imaginary.0")
def complex_linear():
    return ComplexLinear(), (randn(2, 4), randn(2, 4)), (randn(5, 4), randn(5, 4))


class Correlation(nn.Module):
    """Autoformer's autocorrelation by FFT, with the best lags."""

    def forward(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        product = torch.fft.rfft(q, dim=1) * torch.conj(torch.fft.rfft(k, dim=1))
        lags = torch.fft.irfft(product, n=q.shape[1], dim=1).mean(-1)
        values, best = lags.topk(2, dim=-1)
        return values.softmax(-1), best


@case("q.0", "q.1", "k.0", "k.1")
def autocorrelation():
    return Correlation(), (randn(2, 8, 3), randn(2, 8, 3)), (randn(3, 12, 3), randn(3, 12, 3))


class FourierFeatures(nn.Module):
    """Frequencies and shifts: ``fftfreq``, ``fftshift``."""

    def forward(self, image: Tensor) -> Tensor:
        h = image.shape[-2]
        spectrum = torch.fft.fftshift(torch.fft.fft2(image), dim=(-2, -1))
        low = torch.fft.fftshift(torch.fft.fftfreq(h)).abs() < 0.3
        return torch.fft.ifft2(torch.fft.ifftshift(spectrum * low.unsqueeze(-1), dim=(-2, -1))).real


@case("image.0", "image.1", "image.2")
def low_pass_filter():
    return FourierFeatures(), (randn(2, 8, 6),), (randn(1, 12, 10),)
