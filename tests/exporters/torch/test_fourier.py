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
