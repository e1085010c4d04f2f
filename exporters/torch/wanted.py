"""Which axes are to vary, however the caller said so: ``dynamic``, ``dynamic_shapes``, or nothing."""

from __future__ import annotations

from collections.abc import Collection

import torch

from entrepot.exporters.options import Options
from entrepot.exporters.sample import Sample
from entrepot.exporters.torch.axes import Axis, Group, Prober, all_axes, name_groups
from entrepot.exporters.torch.flatten import Flat
from entrepot.exporters.torch.required import required_groups
from entrepot.exporters.torch.shapes import read_shapes, shaped_groups


def wanted_groups(
    prober: Prober, module: torch.nn.Module, sample: Sample, call: Flat, options: Options
) -> tuple[list[Group], Collection[Axis]]:
    """The groups to capture as dynamic, and the axes that the caller allows to vary.

    Raises:
        InputError: What the caller names does not exist.
        ConversionError: The module does not accept another size of an axis that has to vary.
    """
    if options.dynamic_shapes is not None:
        wishes = read_shapes(options.dynamic_shapes, module, sample, call)
        return shaped_groups(prober, wishes, call.names), wishes.keys()
    if options.dynamic is False:
        return [], ()
    if isinstance(options.dynamic, dict):
        groups = required_groups(prober, options.dynamic, options.input_names or call.names)
        return groups, frozenset().union(*(group.axes for group in groups))
    options.tell("finding the axes that vary")
    groups = prober.find_groups()
    name_groups(groups, prober.base, call.names)
    return groups, all_axes(prober.base)
