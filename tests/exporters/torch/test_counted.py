"""Functions that are told a size by Python: the file follows it."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import nn

import entrepot as ep


def windows(n, x):
    return (
        torch.hann_window(n),
        torch.hamming_window(n, periodic=False),
        torch.hamming_window(n, True, 0.6, 0.4),
        torch.blackman_window(window_length=n, dtype=torch.float64),
        torch.bartlett_window(n, periodic=False),
        torch.kaiser_window(n, True, beta=4.0),
    )


def frequencies(n, x):
    return torch.fft.fftfreq(n), torch.fft.rfftfreq(n, d=0.5), torch.fft.fftshift(torch.fft.fftfreq(n))


def places(n, x):
    first, second = torch.triu_indices(n, n, offset=1)
    return torch.tril_indices(n, n + 2, -1), x[:, first] * x[:, second]


def classes(n, x):
    index = torch.arange(n) // 2
    return F.one_hot(index, n), torch.bincount(index, minlength=n), index.bincount(weights=x[0], minlength=n)


def rounded(n, x):
    return F.pad(x, (0, -(-n // 4) * 4 - n)), x[:, : 3 - (5 - 2 * n) // 3], x[:, (3 - n) // 4 :], x[:, : n // 2]


def middles(n, x):
    kept = x.T[x[0] > 0]
    return torch.fft.fftshift(kept), torch.fft.ifftshift(kept, dim=0)


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return tuple(part * 1 if part.dtype != torch.bool else part for part in self.function(x.shape[1], x))


@pytest.mark.parametrize(
    "function", [windows, frequencies, places, classes, rounded, middles], ids=lambda each: each.__name__
)
def test_the_file_follows_the_size(function):
    generator = torch.Generator().manual_seed(0)
    model = ep.export(Function(function).eval(), torch.randn(2, 10, generator=generator))
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString())
    for length in (7, 8, 13, 2):
        x = torch.randn(2, length, generator=generator)
        for found, expected in zip(session.run(None, {"x": x.numpy()}), Function(function)(x), strict=True):
            assert found.dtype == expected.numpy().dtype
            assert np.allclose(found, expected.numpy(), rtol=1e-5, atol=1e-6)


def of_the_largest(n, x):
    return F.one_hot(x.argmax(-1)).float().sum(0), F.one_hot(torch.arange(4)) + n


def as_many_as_occur(n, x):
    index = x.argmax(-1)
    return F.one_hot(index, index.max() + 1), F.one_hot(index, num_classes=index.amax() + 2)


def without_those_beyond(n, x):
    """How mixtures of experts drop what is over the capacity of one: ``one_hot`` refuses it."""
    index, most = x.argmax(-1), max(3, n // 2)
    places = F.one_hot(index, max(index.max() + 1, most))[..., :most].float()
    return (torch.einsum("be,bd->ed", places, x),)


@pytest.mark.parametrize("function", [of_the_largest, as_many_as_occur, without_those_beyond])
def test_data_say_how_many_classes_there_are(function):
    generator = torch.Generator().manual_seed(0)
    model = ep.export(Function(function).eval(), torch.randn(2, 10, generator=generator))
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString())
    assert not any("torch.jit" in note for note in model.notes)
    for length in (7, 8, 13, 3):
        x = torch.randn(3, length, generator=generator)
        for found, expected in zip(session.run(None, {"x": x.numpy()}), Function(function)(x), strict=True):
            assert np.allclose(found, expected.numpy(), rtol=1e-5, atol=1e-6)
