"""Python numbers in the state of an object that count along an axis: a cache's own idea of how much it holds.

Such a number would be a constant of the graph, and wrong as soon as the axis has another size. It is found by calling
the model once: forward changes it, and it was the size of an axis that forward changes too. From then on it *is* that
size, whenever an object is made around other tensors, also while a capture follows it.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from entrepot.exporters.arrays import Arrays
from entrepot.exporters.tree import Constant, Container, Flat, Leaf, Size, Tree, constants, leaves


def has_state(tree: Tree) -> bool:
    """Whether there is an object in a structure, whose state a model may change."""
    return isinstance(tree, Container) and (
        tree.kind == "object" or any(has_state(child) for _, child in tree.children)
    )


def follow_sizes(call: Flat, left: Flat) -> Tree:
    """The tree of a call in which every number that counts along an axis is the size of that axis.

    Args:
        call: The arguments as they were given.
        left: The same arguments as the model left them.
    """
    counts = dict(_counts(call, left))
    return _replaced(call.tree, counts) if counts else call.tree


def uncounted(tree: Tree, left: Flat) -> list[str]:
    """The numbers that the model changes but that stay constants, because they are the size of no axis."""
    after = _numbers(left)
    return [place.name for place in constants(tree) if _is_count(place) and _changed(place, after)]


def unreturned(call: Flat, left: Flat, result: Flat, arrays: Arrays) -> list[str]:
    """The tensors inside of objects that the model changes, without returning what they become."""
    given, returned = ([arrays.to_numpy(tensor) for tensor in flat.tensors] for flat in (call, result))
    before = {leaf.name: given[leaf.index] for leaf in leaves(call.tree) if leaf.inside}
    after = {leaf.name: arrays.to_numpy(left.tensors[leaf.index]) for leaf in leaves(left.tree) if leaf.inside}
    changed = [name for name, array in after.items() if not (name in before and _same(array, before[name]))]
    return [name for name in changed if not any(_same(after[name], array) for array in returned)]


def _same(first: np.ndarray, second: np.ndarray) -> bool:
    return first.shape == second.shape and first.dtype == second.dtype and first.tobytes() == second.tobytes()


def _is_count(place: Constant) -> bool:
    return place.inside and type(place.value) is int


def _changed(place: Constant, after: Mapping[str, Any]) -> bool:
    return after.get(place.name, place.value) != place.value


def _numbers(flat: Flat) -> dict[str, int]:
    return {place.name: place.value for place in constants(flat.tree) if type(place.value) is int}


def _counts(call: Flat, left: Flat) -> Iterator[tuple[str, Size]]:
    after = _numbers(left)
    for place in filter(_is_count, constants(call.tree)):
        if _changed(place, after):
            found = max(_axes(place, call, left, after[place.name]), key=lambda each: each[0], default=None)
            if found is not None:
                yield place.name, found[1]


def _axes(place: Constant, call: Flat, left: Flat, after: int) -> Iterator[tuple[tuple[bool, int], Size]]:
    """The axes that had the number's value and that the model changes; better ones have the number's new value too."""
    shapes = {leaf.name: left.tensors[leaf.index].shape for leaf in leaves(left.tree)}
    for leaf in leaves(call.tree):
        before, now = call.tensors[leaf.index].shape, shapes.get(leaf.name, ())
        if len(before) == len(now):
            for axis, (old, new) in enumerate(zip(before, now, strict=True)):
                if old == place.value and new != old:
                    yield (new == after, _nearness(place, leaf)), Size(place.name, leaf.index, axis)


def _nearness(place: Constant, leaf: Leaf) -> int:
    """How much of their paths they share."""
    pairs = zip(place.name.split("."), leaf.name.split("."), strict=False)
    return len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)))


def _replaced(tree: Tree, counts: Mapping[str, Size]) -> Tree:
    if isinstance(tree, Container):
        children = tuple((key, _replaced(child, counts)) for key, child in tree.children)
        return dataclasses.replace(tree, children=children)
    return counts.get(tree.name, tree) if isinstance(tree, Constant) else tree
