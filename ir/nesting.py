"""How deep graphs lie inside others: protobuf reads a hundred messages inside one another, and no more."""

from __future__ import annotations

import onnx_ir as ir

from entrepot.ir.errors import ConversionError
from entrepot.ir.subgraphs import subgraphs

DEEPEST = 31
"""Graphs inside one another that a file may hold: each lies three messages deeper, and the type of a value five."""


def check_nesting(model: ir.Model) -> None:
    """Refuse a model that could be written, and be read by nobody.

    Raises:
        ConversionError: Branches or loops lie deeper inside one another than a file holds.
    """
    level: list[ir.Graph | ir.Function] = [model.graph, *model.functions.values()]
    depth = 0
    while level:
        level = [body for graph in level for node in graph if node.attributes.data for body in subgraphs(node)]
        depth += bool(level)
    if depth > DEEPEST:
        raise ConversionError(
            f"branches or loops lie {depth} deep inside one another, and a file holds {DEEPEST}",
            hint="write what repeats as a loop: tf.while_loop, jax.lax.scan, torch's scan, keras.ops.while_loop",
        )
