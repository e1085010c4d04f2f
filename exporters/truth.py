"""Whether one holds, or all do; ONNX has no such reductions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import Builder


def any_of(build: Builder, holds: Any, axes: Sequence[int] | None = None, *, keepdims: bool = False) -> ir.Value:
    """Whether one holds, along all axes by default; of nothing, none does.

    They are counted: the largest of no zeros and ones is the smallest number that there is, and not false.
    """
    count = build.op("ReduceSum", build.cast(holds, np.int32), axes, keepdims=int(keepdims))
    result: ir.Value = build.op("Greater", count, 0)
    return result


def all_of(build: Builder, holds: Any, axes: Sequence[int] | None = None, *, keepdims: bool = False) -> ir.Value:
    """Whether all hold; of nothing, all do."""
    result: ir.Value = build.op("Not", any_of(build, build.op("Not", holds), axes, keepdims=keepdims))
    return result
