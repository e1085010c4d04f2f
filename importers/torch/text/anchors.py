"""Tensors that are surely there, whose device and element type others take."""

from __future__ import annotations

from collections.abc import Collection

import onnx_ir as ir

from entrepot.importers.torch.modules.tree import Node, reference
from entrepot.runtime.planning.plan import Value


def is_tensor(value: Value, kinds: Collection[ir.DataType]) -> bool:
    """Whether a value is a tensor, of one of these types if any are named."""
    known = value.type
    return known is not None and known.kind == "tensor" and (not kinds or known.dtype in kinds)


def held_in(root: Node, kinds: Collection[ir.DataType]) -> str:
    """The expression for a tensor of a module's state; empty where it has none."""
    for path, node in root.walk():
        layer = node.layer
        if layer is not None and (name := next((each for each in layer.tensors if each not in layer.buffers), "")):
            return f"{reference(root, path)}.{name}"
        for name, held in node.held.items():
            if not kinds or ir.DataType.from_numpy(held.array.dtype) in kinds:
                return f"{reference(root, path)}.{name}"
    return ""
