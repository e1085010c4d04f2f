"""Fourier transforms are as exact in onnxruntime as in torch, for numbers of elements that are no power of two."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import entrepot as ep
from entrepot.exporters.torch.translations.waves import is_product


class Mixed(nn.Module):
    """Tokens and features mixed by a transform, as in FNet."""

    def __init__(self) -> None:
        super().__init__()
        self.proj = nn.Linear(12, 12)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.proj(torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real)


class Filtered(nn.Module):
    """There and back along an axis of a known size, divided by its root, and by all of it."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x = x.reshape(-1, 50)
        half, whole = torch.fft.rfft(x, norm="ortho"), torch.fft.fft(x)
        back = torch.fft.irfft(half * (1 + 2j), n=50, norm="ortho"), torch.fft.ifft(whole * 1j).imag
        return half.real, half.imag, half.angle(), *back


def _check(model: ep.Model, module: nn.Module, x: torch.Tensor) -> None:
    wanted = module(x)
    found = ep.Session(model, providers=["onnxruntime"]).run([x.numpy()]).values()
    for one, other in zip(found, wanted if isinstance(wanted, tuple) else [wanted], strict=True):
        expected = other.detach().numpy()
        np.testing.assert_allclose(one, expected, rtol=0, atol=3e-6 * np.abs(expected).max())


def test_a_length_that_varies_is_transformed_exactly() -> None:
    torch.manual_seed(0)
    module = Mixed().eval()
    model = ep.export(module, torch.randn(2, 30, 12), progress=False)
    assert isinstance(model.inputs[0].shape[1], str)
    for length in (1, 7, 64, 75, 600):
        _check(model, module, torch.randn(2, length, 12))


def test_transforms_after_one_another_stay_in_double_precision() -> None:
    model = ep.export(lambda x: torch.fft.fft(torch.fft.fft(x), dim=1).real, torch.randn(2, 5, 4), progress=False)
    assert [node.op_type for node in model.ir.graph] == ["Cast", "Unsqueeze", "DFT", "DFT", "Cast", "Gather"]
    x = torch.randn(2, 50, 300)
    (found,) = ep.Session(model, providers=["onnxruntime"]).run([x.numpy()]).values()
    expected = torch.fft.fft2(x.double()).real.numpy()
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-7 * np.abs(expected).max())


def test_a_known_size_is_transformed_exactly() -> None:
    torch.manual_seed(0)
    model = ep.export(Filtered(), torch.randn(4, 100), progress=False)
    assert "DFT" not in {node.op_type for node in model.ir.graph.all_nodes()}
    _check(model, Filtered(), torch.randn(6, 100))


@pytest.mark.parametrize(
    ("size", "product"), [(1, False), (2, False), (3, True), (64, False), (768, True), (769, False)]
)
def test_powers_of_two_and_many_elements_are_left_to_the_operator(size: int, product: bool) -> None:
    assert is_product(size) == product


class Frames(nn.Module):
    """The spectra of frames, by ``torch.stft``."""

    def __init__(self, window: int | None, **how: object) -> None:
        super().__init__()
        self.how = how
        self.register_buffer("window", None if window is None else torch.hann_window(window))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        found = torch.stft(x, window=self.window, return_complex=True, **self.how)
        return torch.view_as_real(found), found.abs()


@pytest.mark.parametrize(
    ("window", "how"),
    [
        (400, {"n_fft": 400, "hop_length": 160}),
        (30, {"n_fft": 50, "win_length": 30, "center": False}),
        (None, {"n_fft": 60, "win_length": 31, "normalized": True, "onesided": False}),
    ],
)
def test_spectra_of_frames_are_exact(window: int | None, how: dict[str, object]) -> None:
    module = Frames(window, **how).eval()
    torch.manual_seed(0)
    model = ep.export(module, torch.randn(2, 1200), progress=False)
    assert "STFT" not in {node.op_type for node in model.ir.graph.all_nodes()}
    for rows, length in ((1, 500), (3, 1999)):
        _check(model, module, torch.sin(torch.arange(float(length)) * 0.3).repeat(rows, 1))


class LowPassed(nn.Module):
    """A spectrum whose upper part is cut off, and back to the signal's own length, and to twice that."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        kept = torch.fft.rfft(x)[..., :5]
        return torch.fft.irfft(kept, n=x.shape[-1]), torch.fft.irfft(kept, n=2 * x.shape[-1])


def test_a_spectrum_of_a_known_size_is_padded_to_a_length_that_varies() -> None:
    torch.manual_seed(0)
    model = ep.export(LowPassed(), torch.randn(2, 20), progress=False)
    assert isinstance(model.inputs[0].shape[1], str)
    for length in (9, 16, 31):
        _check(model, LowPassed(), torch.randn(3, length))


class Halved(nn.Module):
    """Half a spectrum of all there is, and back."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        half = torch.fft.rfft(x)
        return torch.view_as_real(half), torch.fft.irfft(half * 2, n=x.shape[-1])


@pytest.mark.parametrize("rows", [1, 200])
@pytest.mark.parametrize("length", [1, 2, 63, 64, 383, 385, 1000, 6007])
def test_half_a_spectrum_of_any_length_is_exact(halved: ep.Model, rows: int, length: int) -> None:
    _check(halved, Halved(), torch.randn(rows, length))


@pytest.fixture(scope="module")
def halved() -> ep.Model:
    return ep.export(Halved(), torch.randn(2, 600), progress=False)


@pytest.mark.parametrize("size", [960, 1200])
def test_many_elements_of_a_known_number_are_transformed_exactly(size: int) -> None:
    module = Frames(size, n_fft=size, hop_length=size // 2).eval()
    model = ep.export(module, torch.randn(2, 3000), progress=False)
    _check(model, module, torch.randn(1, 4000))
