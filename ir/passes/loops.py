"""Loops with other inputs and outputs, around the same body."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir


def rebuilt(loop: ir.Node, inputs: Sequence[ir.Value | None], outputs: Sequence[ir.Value | None]) -> ir.Node:
    """A Loop before another, whose body has been changed to fit.

    Args:
        loop: It stays, without readers.
        inputs: Of the new one.
        outputs: Which of the old one's each of the new one's stands for; ``None`` for one that is new.
    """
    assert loop.graph is not None
    again = ir.node("Loop", inputs, dict(loop.attributes), num_outputs=len(outputs), name=loop.name)
    again.metadata_props.update(loop.metadata_props)
    again.meta.update(loop.meta)
    loop.graph.insert_before(loop, again)
    for before, after in zip(outputs, again.outputs, strict=True):
        if before is not None:
            take_over(before, after)
    return again


def take_over(before: ir.Value, after: ir.Value) -> None:
    """Let a value have the name and the readers of another."""
    after.name, after.type, after.shape = before.name, before.type or after.type, before.shape
    after.metadata_props.update(before.metadata_props)
    before.replace_all_uses_with(after, replace_graph_outputs=True)
    before.name = ""
