"""Where the shared meaning of every operator is found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from entrepot.ir.table import OpTable

shared: OpTable[Callable[..., Any]] = OpTable("shared meaning", packages=("entrepot.runtime.kernels",))
"""``shared("Gemm", 13)`` registers ``def gemm(xp, A, B, C=None, *, alpha=1.0, ...)``.

A meaning is a function shaped like its schema: the backend first, inputs by position (``None`` for an absent optional
one), attributes keyword-only under their ONNX names with the schema's defaults. It returns one array where the schema
has one output, a tuple in schema order where it has several. The keyword-only ``n_outputs`` may be declared too: the
number of outputs the node names, for variadic outputs and for optional ones that cost something.
"""
