"""Axes that vary while values are like those of the sample, and that a model refuses to vary for others.

A weight that only one way of a branch multiplies with fixes an axis there, whichever way the sample goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from entrepot.exporters.arrays import Array
from entrepot.exporters.axes.groups import Axis, Group
from entrepot.exporters.notes import Fixed
from entrepot.parity.report.facts import REFUSED

if TYPE_CHECKING:
    from entrepot.exporters.axes.probe import Prober


def without_refused(
    prober: Prober, groups: Sequence[Group], variants: Iterable[Sequence[Array]]
) -> tuple[list[Group], dict[Axis, Fixed]]:
    """The groups that vary whatever the values are, and why the axes of the others do not.

    Args:
        prober: Runs the model.
        groups: Those that vary with the values of the sample; one that the caller asked for stays.
        variants: Its sample with other values.
    """
    left, reasons = [*groups], dict[Axis, Fixed]()
    for tensors in variants:
        if (other := prober.with_values(tensors)) is None:
            continue
        for group in [*left]:
            if group.formula is None and not group.required and (reason := _refusal(other, group)) is not None:
                reasons |= dict.fromkeys(group.axes, reason)
                left.remove(group)
    return left, reasons


def _refusal(prober: Prober, group: Group) -> Fixed | None:
    """How the model refuses every other size of a group that it was found to take."""
    present = prober.size(min(group.axes))
    refusals = [prober.takes(dict.fromkeys(group.axes, size)) for size in group.sizes if size != present]
    if not refusals or refusals[0] is None or None in refusals:
        return None
    return Fixed(REFUSED, f"with other values than the sample's: {refusals[0]}", refusals[0].source)
