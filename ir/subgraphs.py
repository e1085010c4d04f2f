"""The graphs that nodes carry."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir


def subgraphs(node: ir.Node) -> Iterator[ir.Graph]:
    """The graphs among a node's attributes, such as the branches of an If, but not the graphs inside those."""
    for attribute in node.attributes.values():
        if attribute.is_ref():
            continue
        if attribute.type == ir.AttributeType.GRAPH:
            yield attribute.as_graph()
        elif attribute.type == ir.AttributeType.GRAPHS:
            yield from attribute.as_graphs()
