"""Products of operands whose ranks are known: torch's functions for exactly these, which look at nothing first."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from entrepot.runtime.node_view import NodeView
from entrepot.runtime.providers.torch.table import prepared

_MOST = 1 << 40
"""Elements of one operand times those of the other; the native kernel asks for room before it makes more."""

_FLOATS = frozenset(np.dtype(kind) for kind in (np.float16, np.float32, np.float64))


@prepared("MatMul", 13)
def matmul(node: NodeView) -> Callable[..., Any] | None:
    """Of two matrices, or whatever else torch multiplies, if the result is certainly not a very large one."""
    shapes = [None if given is None or given.dtype not in _FLOATS else given.shape for given in node.inputs]
    if any(shape is None or not all(isinstance(dim, int) for dim in shape) for shape in shapes):
        return None
    if math.prod(size for shape in shapes for size in shape or () if isinstance(size, int)) > _MOST:
        return None
    return torch.mm if [len(shape or ()) for shape in shapes] == [2, 2] else torch.matmul
