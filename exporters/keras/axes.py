"""The axes of a functional model, which says of each whether it is open."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import keras

from entrepot.exporters.axes.groups import Axis, Group, all_axes, name_groups
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.exporter import Source
from entrepot.exporters.keras import upstream
from entrepot.exporters.notes import Fixed
from entrepot.exporters.options import Options
from entrepot.parity.report.facts import REFUSED

_BATCH: Axis = (0, 0)


def stated_groups(
    model: Any, source: Source, prober: Prober, options: Options
) -> tuple[list[Group], Collection[Axis], Mapping[Axis, Fixed]]:
    """The axes that a functional model leaves open, grouped; see ``Source.groups``.

    A batch that is all that is open needs no trial where layers of Keras alone are called, none of which looks at it,
    and one where there are operations as well. What is said of it is proved in the end like everything else.
    """
    options.tell("finding the axes that vary")
    fixed = {axis: Fixed(REFUSED, "it states this one") for axis, size in _sizes(model).items() if size}
    free = [axis for axis in all_axes(prober.base) if axis not in fixed]
    if free == [_BATCH] and prober.size(_BATCH) and _takes_more(model, prober):
        size = prober.size(_BATCH)
        groups = [Group(frozenset(free), "", [size, size + 1])]
    else:
        groups = prober.find_groups(free)
    name_groups(groups, source.arrays, prober.base, source.call.names)
    return groups, free, fixed


def _takes_more(model: Any, prober: Prober) -> bool:
    """Whether a model takes one item more than the base has, which then has at least two."""
    size = prober.size(_BATCH)
    if not is_plain(model) and prober.takes({_BATCH: size + 1}) is not None:
        return False
    if size == 1:
        prober.enlarge([_BATCH], 2)
    return True


def is_plain(model: Any) -> bool:
    """Whether all that a model calls are layers of Keras, for inference: they draw nothing, and look at no batch."""
    return is_deterministic(model) and all(isinstance(each, keras.Layer) for each in _called(model))


def is_deterministic(model: Any) -> bool:
    """Whether a model calls layers and operations of Keras alone, and none that draws numbers or keeps a state."""
    layers = upstream.nested_layers(model)
    return (
        all(isinstance(each, keras.Layer) or upstream.is_own_operation(each) for each in _called(model))
        and all(upstream.is_own(layer) and not isinstance(layer, keras.layers.Lambda) for layer in layers)
        and not any(getattr(layer, "stateful", False) for layer in layers)
    )


def _called(model: Any) -> list[Any]:
    """The layers and operations that a model calls."""
    graphs = filter(None, map(upstream.graph_of, upstream.nested_layers(model)))
    return [node.operation for graph in graphs for node in upstream.ordered_nodes(graph)]


def is_batch_alone(model: Any) -> bool:
    """Whether the batch of one input is all that a model leaves open."""
    return [axis for axis, size in _sizes(model).items() if size is None] == [_BATCH]


def _sizes(model: Any) -> dict[Axis, int | None]:
    return {(at, axis): size for at, spec in enumerate(model.inputs) for axis, size in enumerate(spec.shape)}
