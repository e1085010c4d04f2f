"""Complex numbers, which no ONNX runtime computes with, as pairs of real ones."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import nn

import entrepot as ep
from entrepot.exporters.torch.translations.pair import Pair
from entrepot.exporters.torch.translations.pairs import rule_for

aten = torch.ops.aten
X = torch.randn(2, 5, 6, generator=torch.Generator().manual_seed(0))


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        generator = torch.Generator().manual_seed(1)
        self.function = function
        self.register_buffer("turns", torch.polar(torch.ones(5, 3), torch.randn(5, 3, generator=generator)))
        self.weight = nn.Parameter(torch.randn(6, 4, generator=generator, dtype=torch.complex64))

    def forward(self, x):
        return self.function(self, x)


def rotary(self, x):
    return torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (3, 2))) * self.turns).flatten(-2)


def zero_padded(self, x):
    spectrum = torch.fft.rfft(x)
    low = torch.zeros_like(spectrum)
    low[:, :, :2] = spectrum[:, :, :2] * 2
    return torch.fft.irfft(low, n=6)


def filtered(self, x):
    kept = torch.fft.rfftfreq(x.shape[1]) < 0.3
    return torch.fft.irfft(torch.fft.rfft(x, dim=1) * kept[None, :, None], n=x.shape[1], dim=1)


def there_and_back(self, x):
    window, wave = torch.hann_window(8), x.reshape(2, 30)
    spectrum = torch.stft(wave, 8, 2, window=window, return_complex=True)
    return torch.istft(spectrum * spectrum.abs().clamp(max=1), 8, 2, window=window)


FORWARD = {
    "rotary": rotary,
    "zero-padded spectrum": zero_padded,
    "filter": filtered,
    "stft and back": there_and_back,
    "einsum": lambda self, x: torch.einsum("bti,io->bto", torch.complex(x, -x), self.weight).abs(),
    "linear": lambda self, x: torch.view_as_real(F.linear(torch.complex(x, x + 1), self.weight.mT)),
    "matmul": lambda self, x: (torch.complex(x, -x) @ self.weight).imag,
    "spectral weights": lambda self, x: torch.fft.irfft(
        torch.einsum("bti,io->bto", torch.fft.rfft(x, n=10), self.weight), n=6
    ),
    "correlation": lambda self, x: torch.fft.irfft(torch.fft.rfft(x).conj() * torch.fft.rfft(x)),
    "two dimensions": lambda self, x: torch.fft.ifft2(torch.fft.fft2(x) * 2).real,
    "shifted": lambda self, x: torch.fft.fftshift(torch.fft.fft(x), dim=-1).real,
    "angle": lambda self, x: torch.fft.rfft(x).angle(),
    "index": lambda self, x: torch.view_as_real(torch.complex(x, x)[:, [0, 2]]),
    "quotient": lambda self, x: torch.view_as_real(torch.complex(x, x + 1) / torch.complex(x * 2, x - 3)),
    "choice": lambda self, x: torch.view_as_real(torch.where(x > 0, torch.complex(x, x), torch.complex(x * 0, x))),
    "mean": lambda self, x: torch.complex(x, x).mean(1).sum(-1).abs(),
    "names of old": lambda self, x: torch.divide(
        torch.concat([torch.fft.rfft(x), torch.multiply(torch.fft.rfft(x), 2j)], -1), torch.fft.rfft(x)[..., :1] + 3
    ).abs(),
    "over a literal": lambda self, x: torch.view_as_real(torch.complex(x, x + 1) / (0.5 - 3j)),
    "padded with a number": lambda self, x: F.pad(torch.complex(x, x + 1), (1, 2), value=3.0).abs(),
    "padded by mirror": lambda self, x: torch.view_as_real(F.pad(torch.complex(x, x + 1), (1, 2), mode="reflect")),
    "padded by the border": lambda self, x: torch.view_as_real(F.pad(torch.complex(x, x), (1, 2), mode="replicate")),
    "padded in a circle": lambda self, x: torch.view_as_real(F.pad(torch.complex(x, -x), (4, 2), mode="circular")),
    "between": lambda self, x: torch.lerp(torch.complex(x, x + 1), torch.complex(-x, x * x), 0.3).abs(),
    "close": lambda self, x: torch.isclose(torch.complex(x, x + 1), torch.complex(x, x + 1 + 1e-6 * x.round())),
    "sign": lambda self, x: torch.view_as_real(torch.sgn(torch.complex(x, x + 1))),
    "spread": lambda self, x: torch.complex(x, x * x).std(-1),
    "cross product": lambda self, x: torch.view_as_real(
        torch.linalg.cross(torch.complex(x, x + 1)[..., :3], torch.complex(x, -x)[..., 3:])
    ),
    "filled anew": lambda self, x: torch.complex(x, x + 1).new_full((2, 3), 1 - 2j).abs() + x[0, 0, 0],
    "a literal": lambda self, x: torch.view_as_real(torch.complex(x, x) * 1j + (2 - 1j)),
}


@pytest.mark.parametrize("name", FORWARD)
def test_complex_numbers_are_exported_and_sizes_vary(name):
    model = ep.export(Function(FORWARD[name]), X)
    assert model.report.ok
    kinds = {value.dtype for node in model.ir.graph for value in (*node.inputs, *node.outputs) if value is not None}
    assert not any("COMPLEX" in str(kind) for kind in kinds)


NUMBERS = [0.0, -0.0, 1e-20, 0.5, -0.5, 1.0, -2.0, 3.0, -80.0, 1e4, -1e4]
GRID = torch.complex(*(axis.flatten() for axis in torch.meshgrid(*[torch.tensor(NUMBERS)] * 2, indexing="ij")))
ONE = ("abs", "angle", "exp", "expm1", "log", "sqrt", "rsqrt", "reciprocal", "square", "sin", "cos", "sinh", "cosh")
ONE += ("tanh", "tan", "sigmoid", "sgn", "neg", "conj_physical")
TWO = ("add", "sub", "mul", "div", "eq", "ne")


def whole(value):
    return torch.complex(value.re, value.im) if isinstance(value, Pair) else value


def finite(value):
    return torch.view_as_real(value).isfinite().all(-1) if value.is_complex() else value.isfinite()


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_number_are_those_of_torch(name):
    z = GRID.to(torch.complex128)
    exact, found = getattr(torch, name)(z), whole(rule_for(getattr(aten, name))(Pair(z.real, z.imag)))
    known = finite(exact) & (exact.abs() < 1e200)
    np.testing.assert_allclose(found[known].numpy(), exact[known].numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_numbers_are_those_of_torch(name):
    z, w = (
        each.flatten()
        for each in torch.meshgrid(GRID.to(torch.complex128), GRID[::7].to(torch.complex128), indexing="ij")
    )
    exact = getattr(torch, name)(z, w)
    found = whole(rule_for(getattr(aten, name))(Pair(z.real, z.imag), Pair(w.real, w.imag)))
    known = finite(exact)
    np.testing.assert_allclose(found[known].numpy(), exact[known].numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("power", [0, 1, 2, 5, 0.5, 1.5, -1])
def test_powers_are_those_of_torch(power):
    z = GRID[GRID.abs() > 0].to(torch.complex128)
    found = whole(rule_for(aten.pow)(Pair(z.real, z.imag), power))
    np.testing.assert_allclose(found.numpy(), torch.pow(z, power).numpy(), rtol=1e-9, atol=1e-12)


class Spectrum(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(torch.fft.rfft(x))


@pytest.mark.parametrize(
    ("function", "exact"),
    [
        (torch.angle, True),
        (torch.view_as_real, True),
        (lambda z: (z * 2).angle(), True),
        (torch.abs, False),
        (lambda z: torch.fft.irfft(z.conj() * z, n=6), False),
        (lambda z: torch.fft.fft(z, dim=0).real, False),
    ],
)
def test_parts_that_are_real_are_made_so_where_angles_show_it(function, exact):
    model = ep.export(Spectrum(function), torch.randn(3, 6))
    assert model.report
    masked = "Range" in {node.op_type for node in model.ir.graph}
    assert masked == exact


def squared(x):
    return x * x


SIZES = {
    "power": (lambda self, x: torch.fft.rfft(x).abs() ** 2, ["Slice", "Cast", "ReduceSumSquare"]),
    "power by a product": (lambda self, x: squared(torch.fft.fft(x).abs()), ["DFT", "Cast", "ReduceSumSquare"]),
    "size": (lambda self, x: torch.fft.rfft(x).abs(), ["Slice", "Cast", "Cast", "ReduceL2", "Cast"]),
    "of a turned spectrum": (lambda self, x: torch.fft.rfft(x).mT.abs() ** 2, ["Mul", "Mul", "Add"]),
}


@pytest.mark.parametrize("name", SIZES)
def test_the_size_of_a_spectrum_takes_few_nodes(name):
    function, ends = SIZES[name]
    model = ep.export(Function(function), X, progress=False)
    assert [node.op_type for node in model.ir.graph][-len(ends) :] == ends
    small, large = X * 1e-12, X * 1e12
    for x in (small, large):
        (found,) = ep.Session(model, providers=["onnxruntime"]).run({model.inputs[0].name: x.numpy()}).values()
        expected = function(None, x).numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5 * expected.max())
