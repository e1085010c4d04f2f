from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from entrepot.runtime.node_view import NodeView

Array: TypeAlias = np.ndarray[Any, Any]

BLAS_TYPES = (np.dtype(np.float32), np.dtype(np.float64))
"""Element types whose products are BLAS's."""


def is_given(node: NodeView, position: int) -> bool:
    """Whether the node has this input."""
    return len(node.inputs) > position and node.inputs[position] is not None


def constant(node: NodeView, position: int) -> Array | None:
    """The value of a constant input; ``None`` when it is absent or only known at run time."""
    value = node.inputs[position] if len(node.inputs) > position else None
    return None if value is None else value.constant


def blas_constant(node: NodeView, position: int) -> Array | None:
    """The value of a constant input of float32 or float64."""
    value = constant(node, position)
    return value if value is not None and value.dtype in BLAS_TYPES else None
