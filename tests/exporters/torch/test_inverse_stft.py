"""Waveforms from spectra, as long as another input says."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

import entrepot as ep


class Vocoder(nn.Module):
    def __init__(self, forth, longer):
        super().__init__()
        self.forth = dict({"n_fft": 8, "hop_length": 2, "return_complex": True}, **forth)
        self.back = {key: value for key, value in self.forth.items() if key not in ("return_complex", "pad_mode")}
        self.longer = longer
        self.register_buffer("window", torch.hamming_window(self.forth.get("win_length", 8)))

    def forward(self, wave):
        spectrum = torch.stft(wave, window=self.window, **self.forth)
        return torch.istft(spectrum * 0.5, window=self.window, length=wave.shape[-1] + self.longer, **self.back)


WAYS = {
    "plain": ({}, 0),
    "hop": ({"hop_length": 3}, 0),
    "short window": ({"win_length": 5}, 0),
    "not centred": ({"center": False}, 0),
    "normalised": ({"normalized": True}, 0),
    "both sides": ({"onesided": False}, 0),
    "longer than its frames": ({"hop_length": 3}, 9),
}


@pytest.mark.parametrize("name", WAYS)
def test_a_waveform_as_long_as_another(name):
    module = Vocoder(*WAYS[name]).eval()
    generator = torch.Generator().manual_seed(0)
    model = ep.export(module, torch.randn(2, 30, generator=generator))
    assert model.inputs[0].shape == ("batch", "wave_dim1")
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString())
    for shape in ((3, 41), (1, 24)):
        wave = torch.randn(*shape, generator=generator)
        (found,) = session.run(None, {"wave": wave.numpy()})
        assert np.allclose(found, module(wave).numpy(), rtol=1e-4, atol=1e-5)
