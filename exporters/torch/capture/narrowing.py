"""Bounds on the sizes of a group: which a capture needs, and whether the module does not need more."""

from __future__ import annotations

import math
from collections.abc import Mapping

from entrepot.exporters.axes.groups import AMPLE, Group
from entrepot.exporters.axes.probe import Prober

NO_NEWS = "the condition is one that holds"
_COSTLY = 2048  # beyond it, what forward builds from a size may not fit into memory
_FAR = 16  # times the size in the sample


def keep_within(group: Group, bounds: Mapping[str, int], prober: Prober, narrowed: set[str]) -> str:
    """Narrow a group to bounds, or to steps that lead beyond them; the reason where it cannot vary within them."""
    if group.symbol in narrowed and group.step > 1:  # the bounds were found before, for sizes between the steps, too
        return ""
    beyond = bounds.get("max", 0) + 1
    if beyond > 1 and is_at_stake(group, beyond):
        if reason := _kept_from(group, beyond, prober):
            return reason
        if _goes_in_steps(group, beyond, prober):
            narrowed.add(group.symbol)
            return ""
    if _narrow(group, bounds):
        narrowed.add(group.symbol)
    elif group.symbol not in narrowed:
        if group.automatic:
            return NO_NEWS
        group.automatic = True
        narrowed.add(group.symbol)
    if group.bounds.get("max", math.inf) <= group.bounds["min"]:
        return f"the capture needs size {group.bounds['min']}"
    return ""


def is_at_stake(group: Group, size: int) -> bool:
    """Whether an axis may not be cut short at a size: a far one is a stated bound, unless more was asked for."""
    near = size <= min(_COSTLY, (AMPLE if group.bounded else _FAR) * group.sizes[0])
    return group.endless or (group.wants(size) and (near or group.asked[1] is not None))


def _kept_from(group: Group, size: int, prober: Prober) -> str:
    """Why a group cannot vary that a capture keeps from a size; empty if the module refuses this as well."""
    if group.endless:
        return f"the capture ends at size {size - 1}"
    return f"forward takes another path from size {size} on" if _goes_on(group, size, prober) else ""


def _goes_on(group: Group, size: int, prober: Prober) -> bool:
    """Whether the module accepts a size beyond a bound, and so behaves differently there."""
    if size > _COSTLY:
        return prober.takes_shape(group.axes, size)
    return prober.takes(dict.fromkeys(group.axes, size)) is None


def _goes_in_steps(group: Group, size: int, prober: Prober) -> bool:
    """Take steps that lead beyond a size that is refused, if there are any: from 64 to 96 where 65 is refused.

    A few sizes beside each multiple may be accepted, too, such as 63. Users have the multiples, and far ones.
    """
    stepped = prober.stepped(group, size) if group.step == 1 else None
    if stepped is None:
        return False
    group.step, group.sizes, group.bounds = stepped.step, stepped.sizes, {"min": 2}
    return True


def _narrow(group: Group, bounds: Mapping[str, int]) -> bool:
    """Add bounds to those of a group; returns whether they say anything new."""
    before = dict(group.bounds)
    group.bounds["min"] = max(bounds.get("min", 0), before.get("min", 0))
    if "max" in bounds:
        group.bounds["max"] = min(bounds["max"], before.get("max", bounds["max"]))
    return group.bounds != before
