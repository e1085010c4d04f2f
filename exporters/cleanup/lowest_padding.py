"""Minus infinities around the input of a maximum pooling, which becomes the pooling's own padding."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import onnx_ir

from entrepot.ir.passes.graphs import has_references, typed_graphs
from entrepot.ir.typing.query import Types

_PADS, _VALUE, _AXES = 1, 2, 3


def let_pools_pad(model: onnx_ir.Model, weights: Collection[str]) -> None:
    """Let a pooling do the padding before it, in place.

    Before: ``MaxPool(Pad(x, [0, 0, 0, 0, 0, 0, 1, 1], -inf))``. After: ``MaxPool<pads = [0, 0, 1, 1]>(x)``.
    """
    for graph, types in typed_graphs(model):
        for node in [node for node in graph if node.op_type == "MaxPool" and not node.domain]:
            pad = node.inputs[0].producer() if node.inputs[0] is not None else None
            if pad is not None and pad.graph is node.graph and (pads := _taken(pad, node, types, weights)):
                node.attributes["pads"] = onnx_ir.AttrInt64s("pads", pads)
                node.replace_input_with(0, pad.inputs[0])
                graph.remove(pad, safe=True)


def _taken(pad: onnx_ir.Node, pool: onnx_ir.Node, types: Types, weights: Collection[str]) -> list[int]:
    """What the pooling pads then; nothing where it cannot, or where a window might lie beside the input."""
    if not _is_plain(pool) or not _pads_below_all(pad, types, weights):
        return []
    around, kernel = _around(pad, types, weights), np.array(pool.attributes.get_ints("kernel_shape"))
    if around is None or around.shape[1] != len(kernel) + 2 or around[:, :2].any() or (around < 0).any():
        return []
    pads = np.array(pool.attributes.get_ints("pads", [0] * 2 * len(kernel))).reshape(2, -1) + around[:, 2:]
    return [] if (pads >= kernel).any() else [int(each) for each in pads.ravel()]


def _is_plain(pool: onnx_ir.Node) -> bool:
    """Whether its padding is stated, and its windows have no gaps, which might leave nothing but padding in one."""
    told = pool.attributes
    stated = told.get_string("auto_pad", "NOTSET") == "NOTSET" and not told.get_int("ceil_mode", 0)
    return stated and not has_references(pool) and all(step == 1 for step in told.get_ints("dilations", ()))


def _pads_below_all(pad: onnx_ir.Node, types: Types, weights: Collection[str]) -> bool:
    """Whether a node pads with minus infinity, for one reader alone."""
    if pad.op_type != "Pad" or pad.domain or has_references(pad):
        return False
    if pad.outputs[0].is_graph_output() or len(pad.outputs[0].uses()) > 1:
        return False
    known = _known(pad, _VALUE, types, weights)
    is_constant = pad.attributes.get_string("mode", "constant") == "constant"
    return is_constant and known is not None and known.dtype.kind == "f" and bool((known == -np.inf).all())


def _around(pad: onnx_ir.Node, types: Types, weights: Collection[str]) -> np.ndarray | None:
    """What is added before and after each axis: [2, rank]."""
    pads, x = _known(pad, _PADS, types, weights), pad.inputs[0]
    rank = None if x is None or x.shape is None else x.shape.rank()
    if pads is None or rank is None:
        return None
    axes = list(range(rank))
    if len(pad.inputs) > _AXES and pad.inputs[_AXES] is not None:
        known = _known(pad, _AXES, types, weights)
        if known is None:
            return None
        axes = [int(axis) % rank for axis in known]
    around = np.zeros((2, rank), np.int64)
    around[:, axes] = pads.reshape(2, -1)
    return around


def _known(pad: onnx_ir.Node, at: int, types: Types, weights: Collection[str]) -> np.ndarray | None:
    value = pad.inputs[at] if len(pad.inputs) > at else None
    return None if value is None or value.name in weights else types.known.array(value)
