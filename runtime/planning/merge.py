"""Steps that compute the same thing from the same values are run once.

``ir/passes/merge_repeated.py`` does so for graphs that are written. It cannot stand in for this: what repeats in a
plan shows only after functions are inlined, branches taken and constants folded; a graph output keeps its node in a
file, but not in a plan; and a session neither changes nor copies the model, of whose nodes ``plan()`` still says which
was merged with which.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from entrepot.runtime.planning.plan import Block, Step, Value, with_work_of


def merged(block: Block) -> Block:
    """The block without repeated steps; subgraphs are left as they are, but read the steps that are kept.

    Before: ``a = Shape(x); b = Shape(x)``. After: ``a = Shape(x)``, with ``a`` wherever ``b`` was.
    """
    replaced: dict[Value, Value] = {}
    seen: dict[Hashable, Step] = {}
    kept: list[Step] = []
    for step in block.steps:
        _rewire(step, replaced)
        twin = seen.setdefault(_signature(step), step)
        if twin is step or len(twin.outputs) < len(step.outputs):
            kept.append(step)
            continue
        twin.computes = with_work_of(twin, [step], "merged")
        replaced.update(
            (mine, its)
            for mine, its in zip(step.outputs, twin.outputs, strict=False)
            if mine and its and mine is not its
        )
        if any(mine and not its for mine, its in zip(step.outputs, twin.outputs, strict=False)):
            kept.append(step)
    outputs = [replaced.get(value, value) if value is not None else None for value in block.outputs]
    return Block(block.inputs, outputs, kept, block.name)


def _rewire(step: Step, replaced: dict[Value, Value]) -> None:
    if not replaced:
        return
    step.inputs = [replaced.get(value, value) if value is not None else None for value in step.inputs]
    for inner in step.blocks.values():
        inner.outputs = [replaced.get(value, value) if value is not None else None for value in inner.outputs]
        for each in inner.steps:
            _rewire(each, replaced)


def _signature(step: Step) -> Hashable:
    """Equal for steps that must give equal results."""
    if step.graphs or not step.traits.repeats:
        return id(step)
    attributes = tuple(sorted((name, _hashable(value)) for name, value in step.attributes.items()))
    return step.key, tuple(map(_identity, step.inputs)), attributes


def _identity(value: Value | None) -> Hashable:
    """Small constants are the same when they are equal; other values only when they are one object."""
    if value is not None and isinstance(value.constant, np.ndarray) and value.constant.size <= 16:
        array = value.constant
        if array.dtype.kind != "O":
            return str(array.dtype), array.shape, array.tobytes()
    return id(value)


def _hashable(value: Any) -> Hashable:
    return (str(value.dtype), value.shape, value.tobytes()) if isinstance(value, np.ndarray) else repr(value)
