"""Copies of graphs that share the weights."""

from __future__ import annotations

import onnx_ir

from entrepot.ir.errors import ConversionError


def copy_graphs(model: onnx_ir.Model) -> onnx_ir.Model:
    """A copy whose graphs can be changed freely; tensors are shared.

    Raises:
        ConversionError: Nodes are out of order, or refer to values that belong to no graph.
    """
    try:
        copy = model.clone()
    except RuntimeError as error:  # onnx_ir wraps what went wrong once per level
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        raise ConversionError(f"the graph cannot be copied: {cause}", hint="ep.load checks a graph") from error
    copy.meta.update(model.meta)
    return copy
