"""Operator-set versions: which one the hub speaks, and how models move between them."""

from __future__ import annotations

OPSET = 28
"""The one ai.onnx version that kernels, importers and passes are written for: the newest our tables cover."""

ML_OPSET = 5
"""The ai.onnx.ml version that goes with ``OPSET``."""

DEFAULT = 20
"""The version files are written at unless another is asked for; every current runtime loads it."""
