"""Gather at one constant place, which is a view of its input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from entrepot.runtime.node_view import NodeView
from entrepot.runtime.providers.torch.constants import constant
from entrepot.runtime.providers.torch.dtypes import RAW, torch_dtype
from entrepot.runtime.providers.torch.native.movement import gather as plain
from entrepot.runtime.providers.torch.table import prepared


@prepared("Gather", 13)
def gather(node: NodeView) -> Callable[..., Tensor] | None:
    """``x[..., 3, ...]``."""
    place, data = constant(node, 1), node.inputs[0]
    if place is None or place.ndim or data is None or data.dtype is None or torch_dtype(data.dtype) in RAW:
        return None
    index, axis = int(place), node.attributes.get("axis", 0)

    def select(X: Tensor, indices: Any) -> Tensor:
        if not -X.ndim <= axis < X.ndim or not -X.shape[axis] <= index < X.shape[axis]:
            return plain(X, indices, axis=axis)  # raises the error that says why
        return X.select(axis, index)

    return select
