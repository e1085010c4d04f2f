"""Products of operands whose ranks are known: torch's functions for exactly these, which look at nothing first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from entrepot.runtime.node_view import NodeView
from entrepot.runtime.providers.torch.table import prepared

_FLOATS = frozenset(np.dtype(kind) for kind in (np.float16, np.float32, np.float64))


@prepared("MatMul", 13)
def matmul(node: NodeView) -> Callable[..., Any] | None:
    """Of two matrices, or whatever else torch multiplies."""
    if any(given is None or given.dtype not in _FLOATS for given in node.inputs):
        return None
    ranks = {None if given is None or given.shape is None else len(given.shape) for given in node.inputs}
    return torch.mm if ranks == {2} else torch.matmul
