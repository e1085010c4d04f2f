"""One model on its way down, and the inputs that several of them share."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]


class Down(NamedTuple):
    """A model in onnx's textual form, at one opset, and older opsets at which it has to compute the same thing."""

    opset: int
    targets: tuple[int, ...]
    body: str
    signature: str
    feeds: tuple[Array, ...]
    stored: str = ""
    atol: float = 1e-5


def f32(*shape: int) -> Array:
    """Normally distributed floats, the same each time."""
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def image(*dims: int | str) -> str:
    """A signature: an image in, a tensor of these dims out."""
    return f"float[2,3,6,6] x) => (float[{','.join(map(str, dims))}] y"


M, X = f32(3, 4), f32(2, 3, 6, 6)
SPECIAL = np.array([[0, -0.0, 1.5, -2.5], [np.inf, -np.inf, np.nan, 0.5], [2.5, -0.5, 1e30, -1e-30]], np.float32)
UNARY = "float[3,4] x) => (float[3,4] y"
TO_BOOL = "float[3,4] x) => (bool[3,4] y"
