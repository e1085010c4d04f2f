"""Which axes are to vary, however the caller said so: ``dynamic``, ``dynamic_shapes``, or nothing."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from entrepot.exporters.axes.groups import Axis, Group, all_axes, name_groups
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.axes.required import required_groups
from entrepot.exporters.exporter import Source
from entrepot.exporters.options import Options


def wanted_groups(prober: Prober, source: Source, options: Options) -> tuple[list[Group], Collection[Axis]]:
    """The groups to capture as dynamic, and the axes that the caller allows to vary.

    Raises:
        InputError: What the caller names does not exist.
        ConversionError: The model does not accept another size of an axis that has to vary.
    """
    call = source.call
    if options.dynamic_shapes is not None:
        groups, axes = source.shaped_groups(prober, options.dynamic_shapes)
        return [replace(group, endless=group.symbol in options.endless) for group in groups], axes
    if options.dynamic is False:
        return [], ()
    if isinstance(options.dynamic, dict):
        groups = required_groups(prober, options.dynamic, options.input_names or call.names)
        often = options.from_one
        groups = [replace(group, bounded=options.bounded, often_one=group.symbol in often) for group in groups]
        return groups, frozenset().union(*(group.axes for group in groups))
    options.tell("finding the axes that vary")
    groups = prober.find_groups()
    name_groups(groups, source.arrays, prober.base, call.names)
    return groups, all_axes(prober.base)
