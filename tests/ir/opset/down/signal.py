"""Fourier transforms."""

from __future__ import annotations

from tests.ir.opset.down.case import Down, f32

CASES = {
    "fourier transform of a real signal, half of it": Down(
        17,
        (16, 11, 8),
        "y = DFT<axis = 1, onesided = 1>(x)",
        "float[2,8,1] x) => (float[2,5,2] y",
        (f32(2, 8, 1),),
        atol=1e-4,
    ),
    "fourier transform, inverse and padded": Down(
        20,
        (17, 13, 9),
        "y = DFT<inverse = 1>(x, n, a)",
        "float[2,6,2] x) => (float[2,8,2] y",
        (f32(2, 6, 2),),
        "int64 n = {8}, int64 a = {1}",
        atol=1e-4,
    ),
    "fourier transform of windows": Down(
        17,
        (16, 9),
        "y = STFT(x, step, w)",
        "float[2,L,1] x) => (float[2,F,5,2] y",
        (f32(2, 32, 1),),
        "int64 step = {4}, float[8] w = {0.1, 0.2, 0.5, 1, 1, 0.5, 0.2, 0.1}",
        atol=1e-4,
    ),
}
