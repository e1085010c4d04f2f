"""What a prepared kernel sees of its node when the graph is compiled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from entrepot.ir.typing.plain import Dims


@dataclass(frozen=True)
class InputView:
    """One input of a node.

    Attributes:
        name: Its name in the graph.
        constant: Its value, when it is the same in every run; read-only.
        dtype: Its element type, or ``None`` if unknown or not a tensor.
        shape: One entry per axis: a size, a symbol, or ``None``; ``None`` for an unknown rank. Declared by the file, so
            a kernel may choose by it but must stay right when it is wrong.
    """

    name: str
    constant: np.ndarray[Any, Any] | None = None
    dtype: np.dtype[Any] | None = None
    shape: Dims | None = None


@dataclass(frozen=True)
class NodeView:
    """One node, seen from the kernel that is being bound to it.

    Attributes:
        op_type: Name of the operator.
        inputs: In schema order, ``None`` for an absent optional one.
        domain: Empty for ai.onnx.
        since: Version of the operator at the hub's opset.
        name: Name of the node, for messages.
        attributes: Those that the node carries, as Python values and arrays; defaults are not filled in.
        n_outputs: How many outputs the node names, counted to the last one it uses.
        single_use: Per input: it is a temporary that dies at this node, so its buffer may be overwritten.
    """

    op_type: str
    inputs: tuple[InputView | None, ...]
    domain: str = ""
    since: int = 1
    name: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    n_outputs: int = 1
    single_use: tuple[bool, ...] = ()
