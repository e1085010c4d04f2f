"""Types through the graph: into subgraphs, and out of every step that the file does not declare them for."""

from __future__ import annotations

from dataclasses import replace

import onnx_ir as ir

from entrepot.runtime import types
from entrepot.runtime.plan import Step
from entrepot.runtime.types import Type


def subgraph_input_types(step: Step, count: int) -> list[Type | None]:
    """Types of a subgraph's inputs that follow from the node's own inputs."""
    given = [None if value is None else value.type for value in step.inputs]
    if step.op_type == "SequenceMap":
        return [known.element if known is not None and known.kind == "sequence" else known for known in given]
    if step.op_type == "Loop":
        first = [Type("tensor", ir.DataType.INT64, ()), Type("tensor", ir.DataType.BOOL, ())]
        return [*first, *(_unshaped(known) for known in given[2:])]
    if step.op_type == "Scan":
        states = count - int(step.attributes.get("num_scan_inputs", 0))
        return [_unshaped(known) for known in given[:count]] if states >= 0 else []
    return given


def _unshaped(known: Type | None) -> Type | None:
    return None if known is None else replace(known, shape=None)


def set_types(step: Step) -> None:
    """Declared types stay; the schema's inference fills the others in."""
    if all(value is None or value.type is not None for value in step.outputs):
        return
    found = _block_types(step) if step.blocks else types.infer(step)
    for value, known in zip(step.outputs, found, strict=False):
        if value is not None and value.type is None:
            value.type = known


def _block_types(step: Step) -> list[Type | None]:
    """Types of an If, Loop or Scan: its body's outputs, without what may vary."""
    made = [None if value is None else value.type for value in next(iter(step.blocks.values())).outputs]
    if step.op_type == "Loop":
        carried = len(step.inputs) - 2
        return [_unshaped(known) for known in made[1 : 1 + carried]] + [
            _stacked(known) for known in made[1 + carried :]
        ]
    if step.op_type == "Scan":
        states = len(step.inputs) - int(step.attributes["num_scan_inputs"])
        return [_unshaped(known) for known in made[:states]] + [_unshaped(known) for known in made[states:]]
    if step.op_type == "SequenceMap":
        return [Type("sequence", element=known) for known in made]
    return [_unshaped(known) for known in made]


def _stacked(known: Type | None) -> Type | None:
    return None if known is None or known.shape is None else replace(known, shape=(None, *known.shape))
