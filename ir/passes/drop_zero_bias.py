from __future__ import annotations

from collections.abc import Collection

import onnx_ir as ir

from entrepot.ir.passes.graphs import has_references, typed_graphs, version_of
from entrepot.ir.typing.query import Types

_PLACE = 2
_OPTIONAL_SINCE = {"Conv": 1, "ConvTranspose": 1, "Gemm": 11}


class DropZeroBias(ir.passes.InPlacePass):
    """Leave out a bias of zeros.

    Before: ``Conv(x, w, [0, 0, 0])``. After: ``Conv(x, w)``.
    The same for ConvTranspose, and for Gemm from opset 11 on. Subgraphs and functions are covered.

    Args:
        weights: Names of initializers that are weights, even if they happen to be zeros.
    """

    def __init__(self, weights: Collection[str] = ()) -> None:
        super().__init__()
        self._weights = weights

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        dropped = [_drop(node, types, self._weights) for graph, types in typed_graphs(model) for node in graph]
        return ir.passes.PassResult(model, modified=any(dropped))


def _drop(node: ir.Node, types: Types, weights: Collection[str]) -> bool:
    if node.domain or node.op_type not in _OPTIONAL_SINCE or len(node.inputs) <= _PLACE or has_references(node):
        return False
    bias = node.inputs[_PLACE]
    if bias is None or bias.name in weights or version_of(node, types.opsets) < _OPTIONAL_SINCE[node.op_type]:
        return False
    known = types.known.array(bias)
    if known is None or known.any():
        return False
    node.resize_inputs(_PLACE)
    return True
