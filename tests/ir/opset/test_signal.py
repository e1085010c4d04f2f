"""Fourier transforms of signals whose length is known at run time only."""

from __future__ import annotations

import numpy as np
import pytest

from entrepot.ir.errors import ConversionError
from entrepot.ir.opset.convert import convert_opset
from tests.ir.opset.evaluate import parse, run
from tests.op_cases.normal import normal

X = normal(2, 12, 2)


def transformed(body: str, parts: int, *arrays: np.ndarray, target: int, extra: str = "") -> np.ndarray:
    model = parse(body, 17, f"float[B,N,{parts}] x{extra}) => (float[B,M,K] y")
    result: np.ndarray = run(convert_opset(model, target), *arrays)[0]
    return result


@pytest.mark.parametrize("target", [16, 9, 7])
@pytest.mark.parametrize("inverse", [0, 1])
def test_a_transform_of_open_length_is_computed(inverse: int, target: int) -> None:
    y = transformed(f"y = DFT<axis = 1, inverse = {inverse}>(x)", 2, X, target=target)
    signal = X[..., 0] + 1j * X[..., 1]
    truth = np.fft.ifft(signal) if inverse else np.fft.fft(signal)
    np.testing.assert_allclose(y[..., 0] + 1j * y[..., 1], truth, atol=2e-5)


@pytest.mark.parametrize("length", [None, 8, 13, 20])
def test_half_a_spectrum_has_the_length_asked_for(length: int | None) -> None:
    given, extra = ((), "") if length is None else ((np.array(length, np.int64),), ", int64 n")
    y = transformed(
        f"y = DFT<axis = 1, onesided = 1>(x{', n' if given else ''})", 1, X[..., :1], *given, target=16, extra=extra
    )
    np.testing.assert_allclose(y[..., 0] + 1j * y[..., 1], np.fft.rfft(X[..., 0], length), atol=2e-5)


@pytest.mark.parametrize("axis", [0, 1, 2, -2, -4])
@pytest.mark.parametrize("target", [19, 16, 9, 7])
def test_a_transform_along_a_computed_axis(axis: int, target: int) -> None:
    model = parse("y = DFT<onesided = 1>(x, , axis)", 20, "float[2,4,6,1] x, int64 axis) => (float[P,Q,R,S] y")
    x = normal(2, 4, 6, 1)
    y = run(convert_opset(model, target), x, np.array(axis))[0]
    truth = np.fft.rfft(x[..., 0], axis=range(3)[axis % 4])
    np.testing.assert_allclose(y[..., 0] + 1j * y[..., 1], truth, atol=2e-5)


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("windowed", [True, False])
@pytest.mark.parametrize("target", [16, 9, 7])
def test_frames_of_computed_size_and_distance(parts: int, target: int, *, windowed: bool) -> None:
    window = "w" if windowed else ""
    body = f"y = STFT<onesided = {2 - parts}>(x, step, {window}, length)"
    given = f"float[B,N,{parts}] x, int64 step, float[L] w, int64 length"
    model = parse(body, 17, f"{given}) => (float[B,F,M,2] y")
    x, w = normal(2, 32, parts), np.linspace(0.5, 1, 8, dtype=np.float32)
    y = run(convert_opset(model, target), x, np.array(5), w, np.array(8))[0]
    signal = x[..., 0] if parts == 1 else x[..., 0] + 1j * x[..., 1]
    frames = np.stack([signal[:, start : start + 8] for start in range(0, 25, 5)], 1) * (w if windowed else 1)
    truth = np.fft.rfft(frames) if parts == 1 else np.fft.fft(frames)
    np.testing.assert_allclose(y[..., 0] + 1j * y[..., 1], truth, atol=2e-5)


def test_frames_of_no_length_are_refused() -> None:
    model = parse("y = STFT(x, step)", 17, "float[2,20,1] x) => (float[2,A,B,2] y", stored="int64 step = {3}")
    with pytest.raises(ConversionError, match="neither a window nor a frame length"):
        convert_opset(model, 16)
