"""Features before a model: scaled, filled in, joined, picked."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.ir.errors import InputError
from entrepot.runtime import room
from entrepot.runtime.providers.cpu.table import native

Array = np.ndarray[Any, Any]
ML = "ai.onnx.ml"


@native("ArrayFeatureExtractor", 1, domain=ML)
def array_feature_extractor(X: Array, Y: Array) -> Array:
    """Columns of the last axis, by number: -1 is the last one, which skl2onnx asks for where it does not matter."""
    picked = X[..., Y.reshape(-1)]
    return picked.reshape(1, -1) if X.ndim == 1 else picked


@native("Binarizer", 1, domain=ML)
def binarizer(X: Array, *, threshold: float = 0.0) -> Array:
    """1 above the threshold, 0 elsewhere."""
    return (X > threshold).astype(X.dtype)


@native("FeatureVectorizer", 1, domain=ML)
def feature_vectorizer(*X: Array, inputdimensions: Any = None) -> Array:
    """The inputs side by side, in single precision."""
    rows = [x.reshape(len(x), -1) if x.ndim > 1 else x.reshape(1, -1) for x in X]
    sizes = inputdimensions or [row.shape[1] for row in rows]
    parts = [row[:, :size] for row, size in zip(rows, sizes, strict=True)]
    missing = [size - part.shape[1] for size, part in zip(sizes, parts, strict=True)]
    room.claim((len(rows[0]), sum(sizes)), 4)
    filled = [np.pad(part, ((0, 0), (0, lack))) for part, lack in zip(parts, missing, strict=True)]
    return np.concatenate(filled, 1).astype(np.float32)


@native("Imputer", 1, domain=ML)
def imputer(
    X: Array, *, imputed_value_floats: Any = None, imputed_value_int64s: Any = None, replaced_value_float: float = 0.0,
    replaced_value_int64: int = 0,
) -> Array:  # fmt: skip
    """One value replaced by another, for all columns or for each."""
    whole = X.dtype.kind in "iu"
    given = imputed_value_int64s if whole else imputed_value_floats
    if not given:
        raise InputError(f"Imputer has no values for {X.dtype}")
    if len(given) not in (1, X.shape[-1]):
        raise InputError(f"Imputer has {len(given)} values for {X.shape[-1]} columns")
    missing = X == (replaced_value_int64 if whole else np.float32(replaced_value_float))
    if not whole and np.isnan(replaced_value_float):
        missing = np.isnan(X)
    return np.where(missing, np.array(given, X.dtype), X)


@native("Normalizer", 1, domain=ML)
def normalizer(X: Array, *, norm: str = "MAX") -> Array:
    """Rows over their largest value, the sum of their absolute values, or their length; a norm of 0 divides nothing."""
    x = X.astype(np.float64)
    size = _NORMS[norm](x)
    return (x / np.where(size == 0, 1, size)).astype(np.float32)


_NORMS = {
    "MAX": lambda x: np.max(x, -1, keepdims=True, initial=-np.inf),
    "L1": lambda x: np.abs(x).sum(-1, keepdims=True),
    "L2": lambda x: np.sqrt((x * x).sum(-1, keepdims=True)),
}


@native("Scaler", 1, domain=ML)
def scaler(X: Array, *, offset: Any = None, scale: Any = None) -> Array:
    """``(X - offset) * scale``, for all columns or for each."""
    moved = X.astype(np.float64) - np.array(offset or 0.0, np.float32)
    return (moved * np.array(scale or 1.0, np.float32)).astype(np.float32)
