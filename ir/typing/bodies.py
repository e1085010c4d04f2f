"""What enters the bodies that nodes carry, and what leaves them: the rules of If, Loop, Scan and SequenceMap.

Rules are about shapes, as tuples of whatever stands for a dimension; element types are passed on as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Dims: TypeAlias = tuple[Any, ...]

LOST = -1 << 31
"""Stands for "the shape may change" where an axis is asked for."""


@dataclass(frozen=True)
class Scanned:
    """What a Scan goes over; nothing for other operators.

    Attributes:
        count: How many of its inputs, the last ones.
        input_axes: Along which axes of these; 0 where it is not said.
        output_axes: Along which axes it collects its results; 0 where it is not said.
    """

    count: int = 0
    input_axes: Sequence[int] = ()
    output_axes: Sequence[int] = ()

    @classmethod
    def of(cls, attributes: Mapping[str, Any]) -> Scanned:
        """From attributes as Python values."""
        axes = (attributes.get(name, ()) for name in ("scan_input_axes", "scan_output_axes"))
        return cls(attributes.get("num_scan_inputs", 0), *axes)


def lost_axes(op_type: str, given: int, formals: int, scanned: Scanned) -> list[int | None]:
    """Per input of a body, the axis that its shape lacks of the given one; ``None`` where the shape stays.

    What a Loop carries may change its shape, what a Scan carries may not. Scan 8 has an input that its body does not
    see: nothing is said of it.
    """
    if op_type == "Loop" or given != formals:
        return [LOST] * formals
    carried = max(formals - scanned.count, 0)
    return [None] * carried + [_at(scanned.input_axes, place) for place in range(formals - carried)]


def without_axis(shape: Dims | None, axis: int | None) -> Dims | None:
    """The shape of a body's input, from that of the value given for it and the axis that it lacks."""
    if shape is None or axis is None:
        return shape
    if not -len(shape) <= axis < len(shape):
        return None
    axis %= len(shape)
    return shape[:axis] + shape[axis + 1 :]


def agreed(shapes: Sequence[Dims | None]) -> Dims | None:
    """The shape of an output of an If, from those of its branches."""
    return shapes[0] if all(shape == shapes[0] for shape in shapes) else None


def repeated(
    op_type: str, given: Sequence[Dims | None], results: Sequence[Dims | None], formals: int, scanned: Scanned
) -> list[Dims | None]:
    """The shapes of the outputs of a Loop or Scan.

    Args:
        op_type: Which of them.
        given: The shapes of its inputs.
        results: The shapes that its body returns, without a Loop's condition.
        formals: How many inputs the body has.
        scanned: What a Scan goes over.
    """
    skipped = 2 if op_type == "Loop" else 0
    carried = len(given) - (skipped or scanned.count)
    before = given[skipped:] if len(given) == formals else ()
    return [
        (_either(before[place], shape) if place < len(before) else None)
        if place < carried
        else _collected(shape, _at(scanned.output_axes, place - carried))
        for place, shape in enumerate(results)
    ]


def _either(before: Dims | None, after: Dims | None) -> Dims | None:
    """The shape of what is carried: as it was given if nothing is repeated, else as the body makes it."""
    if before is None or after is None or len(before) != len(after):
        return None
    return tuple(a if a == b else None for a, b in zip(before, after, strict=True))


def _collected(shape: Dims | None, axis: int) -> Dims | None:
    if shape is None:
        return None
    axis = axis if axis >= 0 else axis + len(shape) + 1
    return (*shape[:axis], None, *shape[axis:])


def _at(axes: Sequence[int], place: int) -> int:
    return axes[place] if place < len(axes) else 0
