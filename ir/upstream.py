"""What ``ir`` takes from the private side of other packages; ``tests/ir/test_upstream.py`` says when one of them moves.

- ``Cloner`` of onnx_ir (1.1): the public ``clone()`` has no way to bind the inputs and attributes of a function.
- What onnx's C++ (1.23) raises where it is told to check or to infer: its own errors, and whatever else got out of it.
"""

from __future__ import annotations

import onnx
from onnx_ir._cloner import Cloner

__all__ = ["INFERENCE_ERRORS", "Cloner"]

INFERENCE_ERRORS = (
    onnx.shape_inference.InferenceError,
    onnx.checker.ValidationError,
    LookupError,
    MemoryError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""Raised for nodes that do not fit their operators, that it cannot follow, or whose types it does not know."""
