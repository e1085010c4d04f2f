"""Nodes that pass a value on."""

from __future__ import annotations

import onnx_ir
from onnx_ir.passes import common


class DropIdentities(common.IdentityEliminationPass):
    """Rewire what reads ``y = Identity(x)`` to ``x``.

    The output of a branch or of a loop's body has to be made inside: an ``Identity`` there of a value from outside
    stays, which the pass of onnx_ir (0.1) takes out (``test_control_flow.py``).
    """

    def _try_eliminate_identity_node(self, node: onnx_ir.Node) -> bool:
        source = node.inputs[0] if node.inputs else None
        if source is not None and node.outputs[0].is_graph_output():
            producer = source.producer()
            if producer is None or producer.graph is not node.graph:
                return False
        return super()._try_eliminate_identity_node(node)
