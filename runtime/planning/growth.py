"""Operands that broadcast: two small ones can make a result as large as the product of their sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from entrepot.ir.typing.plain import Dims
from entrepot.runtime.planning.plan import Call, Step
from entrepot.runtime.room import SMALL, broadcasting


def with_room(step: Step, call: Call) -> Call:
    """The call, asking for room first where the result may be much larger than every operand.

    Where the types tell that it is not, which is nearly everywhere, the call stays as it is and costs nothing more.
    """
    if not step.traits.elementwise or step.traits.unread or len(step.inputs) < 2:
        return call
    types = [value.type for value in step.inputs if value is not None]
    if not may_outgrow([None if known is None else known.shape for known in types]):
        return call
    return replace(call, function=broadcasting(call.function, len(call.leading)))


def may_outgrow(shapes: Sequence[Dims | None]) -> bool:
    """Whether the common shape can have many more elements than each of the shapes, as that of (n, 1) and (1, m) has.

    Sizes that the model states are no growth to speak of, unless they are large together.
    """
    known = [shape for shape in shapes if shape is not None]
    rank = max(map(len, known), default=0)
    columns = list(zip(*((1,) * (rank - len(shape)) + shape for shape in known), strict=True))
    if math.prod(max((dim for dim in column if isinstance(dim, int)), default=1) for column in columns) > SMALL:
        return len(shapes) > 1 and not any(
            all(_is_largest(column, at) for column in columns) for at in range(len(known))
        )
    unsure = [column for column in columns if not all(isinstance(dim, int) for dim in column)]
    if len(known) < len(shapes):
        return len(known) < len(shapes) - 1 or bool(unsure)
    # one axis alone is as long as that of some operand
    return len(unsure) > 1 and not any(all(_covers(column, at) for column in unsure) for at in range(len(known)))


def _is_largest(column: Sequence[int | str | None], at: int) -> bool:
    """Whether one operand certainly has the size of the result on an axis."""
    own, others = column[at], [*column[:at], *column[at + 1 :]]
    return (isinstance(own, int) and own > 1) or all(dim is not None and dim in (1, own) for dim in others)


def _covers(column: Sequence[int | str | None], at: int) -> bool:
    """Whether one operand has the size of the result on an axis, but for what the model states."""
    own, others = column[at], [*column[:at], *column[at + 1 :]]
    return (isinstance(own, int) and own > 1) or all(
        isinstance(dim, int) or (dim is not None and dim == own) for dim in others
    )
