"""Sizes that an export had to fix, which modules made from it must refuse otherwise."""

from __future__ import annotations

from collections.abc import Iterator

from entrepot.ir.model import Model
from entrepot.parity.report.facts import REFUSED, ModelFacts


def fixed_sizes(model: Model) -> Iterator[tuple[int, int, int]]:
    """Position of an input, axis, size: where the export alone is why others are not taken.

    Constants in the graph may depend on them, so that it is right for these sizes only, and need not fail at others.
    Sizes that the source refuses are refused by what computes with them; of foreign files nothing is known.
    """
    reasons = ModelFacts.of(model).fixed_axes
    for position, spec in enumerate(model.inputs):
        for axis, size in enumerate(spec.shape or ()):
            reason = reasons.get(f"{spec.name}.{axis}", REFUSED)
            if isinstance(size, int) and not reason.startswith(REFUSED):
                yield position, axis, size
