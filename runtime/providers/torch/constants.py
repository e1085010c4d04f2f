from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from torch import Tensor

from entrepot.runtime.node_view import NodeView
from entrepot.runtime.providers.torch.dtypes import tensor_of

HostArray: TypeAlias = np.ndarray[Any, Any]


def is_given(node: NodeView, position: int) -> bool:
    """Whether the node has this input."""
    return len(node.inputs) > position and node.inputs[position] is not None


def constant(node: NodeView, position: int) -> HostArray | None:
    """The value of a constant input; ``None`` when it is absent or only known at run time."""
    value = node.inputs[position] if len(node.inputs) > position else None
    return None if value is None else value.constant


def float_constant(node: NodeView, position: int) -> HostArray | None:
    """The value of a constant input of float32, which is what oneDNN and MKL pack."""
    value = constant(node, position)
    return value if value is not None and value.dtype == np.float32 else None


def own_tensor(array: HostArray) -> Tensor:
    """A tensor with the values of an array and memory of its own, in order."""
    return tensor_of(np.ascontiguousarray(array)).clone()
