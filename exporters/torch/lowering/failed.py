"""Operators that failed while a forward was captured, which went on without them."""

from __future__ import annotations

import torch

from entrepot.exporters.torch.lowering.schemas import has_results, may_write
from entrepot.exporters.torch.upstream import OpOverload


def remove_failed(program: torch.export.ExportedProgram) -> None:
    """Remove, in place, what has failed within a ``try``: torch (2.13) notes an operator before it computes it."""
    graph = program.graph_module.graph
    for node in list(graph.nodes):
        target = node.target
        if node.users or node.meta.get("val") is not None or not isinstance(target, OpOverload):
            continue
        if has_results(target) and not may_write(target):
            graph.erase_node(node)
