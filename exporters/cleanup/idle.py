"""Nodes and inputs that do nothing, and shapes that onnx infers wrongly."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import onnx_ir

_WHOLE = 2**31 - 1  # an end at or beyond this takes everything there is


def drop_idle(model: onnx_ir.Model, weights: Collection[str]) -> None:
    """Rewire ``y = x[:]`` to ``x``."""
    for node in list(onnx_ir.traversal.RecursiveGraphIterator(model.graph)):
        if node.op_type == "Slice" and _takes_all(node, weights):
            _bypass(node)


def forget_half_spectra(model: onnx_ir.Model) -> None:
    """Remove the shapes after an inverse transform of half a spectrum: onnx (1.23) infers the length of the half."""
    nodes = onnx_ir.traversal.RecursiveGraphIterator(model.graph)
    pending = [node.outputs[0] for node in nodes if node.op_type == "DFT" and _goes_back_from_half(node)]
    while pending:
        value = pending.pop()
        if value.shape is not None and not value.is_graph_output():
            value.shape = None
            pending.extend(output for reader in value.consumers() for output in reader.outputs)


def _goes_back_from_half(node: onnx_ir.Node) -> bool:
    return all(node.attributes.get_int(name, 0) for name in ("inverse", "onesided"))


def _takes_all(node: onnx_ir.Node, weights: Collection[str]) -> bool:
    starts, ends, steps = (_numbers(node, index, weights) for index in (1, 2, 4))
    return (
        starts is not None
        and ends is not None
        and not starts.any()
        and bool((ends >= _WHOLE).all())
        and (len(node.inputs) < 5 or (steps is not None and bool((steps == 1).all())))
    )


def _bypass(node: onnx_ir.Node) -> None:
    output, data = node.outputs[0], node.inputs[0]
    if output.is_graph_output() or data is None:
        return
    output.replace_all_uses_with(data)
    assert node.graph is not None
    node.graph.remove(node, safe=True)


def _numbers(node: onnx_ir.Node, index: int, weights: Collection[str]) -> np.ndarray | None:
    """A constant input that the translation created; ``None`` if it is computed or a weight."""
    value = node.inputs[index] if index < len(node.inputs) else None
    if value is None or value.name in weights:
        return None
    tensor = onnx_ir.convenience.get_const_tensor(value)
    return None if tensor is None else tensor.numpy()
