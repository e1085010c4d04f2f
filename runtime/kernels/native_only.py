"""Operators without a shared meaning: a framework brings its own kernel, or its provider declines them."""

from __future__ import annotations

from collections.abc import Mapping

NATIVE_ONLY: Mapping[str, str] = {
    **dict.fromkeys(
        ["Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform"],
        "draws from the framework's own generator",
    ),
    "RandomUniformLike": "draws from the framework's own generator",
    **dict.fromkeys(
        ["ConvInteger", "QLinearConv", "QLinearMatMul"],
        "exact sums of 8-bit products, which frameworks compute each in its way",
    ),
    **dict.fromkeys(["DFT", "STFT"], "a fast Fourier transform"),
    "Det": "a matrix decomposition",
    **dict.fromkeys(["DeformConv", "MaxRoiPool", "RoiAlign"], "samples at places that depend on data"),
    "MaxUnpool": "writes to places that depend on data, and refuses those outside",
    **dict.fromkeys(["NonMaxSuppression", "Unique"], "how many elements come out depends on data"),
    "TfIdfVectorizer": "counts sequences, of strings as a rule",
}
"""Operator of ai.onnx to the reason."""
