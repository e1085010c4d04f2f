"""Which values keep their type and shape from turn to turn, as torch's loops ask of all that they carry."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from entrepot.importers.torch.dtypes import COMPUTED
from entrepot.importers.torch.layers.layer import LAYERS
from entrepot.runtime.planning.plan import Block, Step, Value


def are_steady(
    body: Block, first: Sequence[Value | None], inputs: Sequence[Value], results: Sequence[Value | None]
) -> bool:
    """Whether values before, in and after a turn are tensors of one type and one shape.

    Files that name every unknown size anew say nothing; it counts there that a turn only does what keeps a shape.
    """
    versions = list(zip(first, inputs, results, strict=True))
    if not all(map(are_tensors, (first, inputs, results))):
        return False
    return all(_is_declared(each) or _is_kept(body, *each) for each in versions)


def are_tensors(values: Sequence[Value | None]) -> bool:
    """Whether all are tensors of a type that torch computes in."""
    return all(
        value is not None and value.type is not None and value.type.kind == "tensor" and value.type.dtype in COMPUTED
        for value in values
    )


def _is_declared(versions: Sequence[Value | None]) -> bool:
    kinds = {(value.type.dtype, value.type.shape) for value in versions if value is not None and value.type is not None}
    ((_, shape),) = kinds if len(kinds) == 1 else [(None, None)]
    return shape is not None and None not in shape


def _is_kept(body: Block, first: Value | None, given: Value, result: Value | None) -> bool:
    shape = _sizes(given)
    kinds = {value.type.dtype for value in (first, given, result) if value is not None and value.type is not None}
    if shape is None or _sizes(first) != shape or _sizes(result) != shape or len(kinds) != 1:
        return False
    alike = {given}
    for step in body.steps:
        plain = step.domain in ("", LAYERS) and len(step.outputs) == 1
        if plain and step.outputs[0] is not None and _keeps(step, alike, shape):
            alike.add(step.outputs[0])
    return result in alike


def _sizes(value: Value | None) -> tuple[int | None, ...] | None:
    """The sizes that are numbers; ``None`` for the others."""
    known = None if value is None or value.type is None else value.type.shape
    return None if known is None else tuple(size if isinstance(size, int) else None for size in known)


def _keeps(step: Step, alike: set[Value], shape: tuple[int | None, ...]) -> bool:
    """Whether a result certainly has the shape of those operands that are known to be alike."""
    if step.op_type in ("MatMul", "Linear"):  # the second one adds a row
        left, right, *rows = step.inputs
        is_square = right is not None and bool(shape) and np.shape(right.constant) == shape[-1:] * 2
        return left in alike and is_square and all(value is not None and _fits(value, shape) for value in rows)
    if not step.traits.elementwise and step.op_type != "Identity":
        return False
    others = [value for value in step.inputs if value is not None and value not in alike]
    return len(others) < len(step.inputs) and all(_fits(value, shape) for value in others)


def _fits(value: Value, shape: tuple[int | None, ...]) -> bool:
    """Whether broadcasting a value to a shape adds no axis and changes no size."""
    own = np.shape(value.constant) if value.constant is not None else _sizes(value)
    if own is None or len(own) > len(shape):
        return False
    return all(
        size == 1 or (size is not None and size == whole) for size, whole in zip(own[::-1], shape[::-1], strict=False)
    )
