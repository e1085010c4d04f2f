"""Caches, whatever they are: taken apart by path, and what each tensor in them is, told by runs of different sizes.

Nothing is looked up by class. What a model returned is walked by ``exporters/structure.py``; a tensor that gets longer
with the tokens, one that keeps its size, one that only an encoder determines, and one that never changes are told apart
by comparing runs. Numbers of Python that count tokens are sizes of tensors, and become these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from entrepot.exporters.structure import Constant, Container, Flat, Leaf, Tree, constants, flatten, leaves, unflatten
from entrepot.exporters.torch.arrays import TORCH
from entrepot.exporters.tree import Size
from entrepot.ir.errors import ConversionError


@dataclass(frozen=True)
class Part:
    """One tensor of a cache.

    Attributes:
        name: Its path in the cache.
        index: Its place in the flat cache.
        shape: Its sizes in the first run.
        dtype: Its element type.
        batch: Which axis is the batch's.
        growing: Which axis gets longer with the tokens; ``None`` if none does.
        fixed: Whether only an encoder determines it, so that steps leave it as it is.
    """

    name: str
    index: int
    shape: tuple[int, ...]
    dtype: torch.dtype
    batch: int
    growing: int | None = None
    fixed: bool = False

    @property
    def past(self) -> str:
        """The input for it."""
        return f"{'encoded' if self.fixed else 'past'}.{self.name}"

    @property
    def present(self) -> str:
        """The output for it."""
        return f"present.{self.name}"


@dataclass(frozen=True)
class Layout:
    """What a cache consists of.

    Attributes:
        tree: How it is built.
        parts: Its tensors that change.
    """

    tree: Tree
    parts: tuple[Part, ...]

    def build(self, tensors: Mapping[str, Any]) -> Any:
        """A cache around tensors, which are given by the names of inputs."""
        flat: list[Any] = [None] * (1 + max((leaf.index for leaf in leaves(self.tree)), default=-1))
        for part in self.parts:
            flat[part.index] = tensors[part.past]
        return unflatten(self.tree, flat)

    def take(self, cache: Any) -> dict[str, torch.Tensor]:
        """The tensors that a step changed, by the names of outputs."""
        flat = apart(cache)
        places = dict(zip(flat.names, flat.tensors, strict=True))
        return {part.present: places[part.name] for part in self.states}

    def fixed(self, cache: Any) -> dict[str, torch.Tensor]:
        """The tensors that only an encoder determines, by the names of inputs."""
        flat = apart(cache)
        places = dict(zip(flat.names, flat.tensors, strict=True))
        return {part.past: places[part.name] for part in self.parts if part.fixed}

    @property
    def states(self) -> tuple[Part, ...]:
        """The tensors that steps change."""
        return tuple(part for part in self.parts if not part.fixed)

    @property
    def grows(self) -> bool:
        """Whether anything in it gets longer with the tokens."""
        return any(part.growing is not None for part in self.states)


def apart(cache: Any) -> Flat:
    """A cache as tensors by path."""
    return flatten(cache, arrays=TORCH)


def copied(flat: Flat) -> Flat:
    """The same with tensors of their own: steps change caches in place."""
    return replace(flat, tensors=[tensor.clone() for tensor in flat.tensors])


def layout_of(first: Flat, wider: Flat, longer: Flat, after: Flat) -> Layout:
    """What a cache consists of, from four runs.

    Args:
        first: The cache after some tokens.
        wider: With a larger batch.
        longer: After more tokens.
        after: The first after a further step.

    Raises:
        ConversionError: Its structure depends on sizes, or something in it changes that is no tensor.
    """
    if not first.names == wider.names == longer.names == after.names:
        raise ConversionError("the cache has other tensors at other sizes", hint="see docs/transformers.md")
    found, kept = [], {}
    for index, name in enumerate(first.names):
        tensors = [flat.tensors[index] for flat in (first, wider, longer, after)]
        part = _part(name, index, *tensors)
        if part is None:
            kept[index] = tensors[0]
        else:
            found.append(part)
    counted = _counters(first, longer, found)
    return Layout(_settled(first.tree, kept, counted), tuple(found))


def _part(
    name: str, index: int, first: torch.Tensor, wider: torch.Tensor, longer: torch.Tensor, after: torch.Tensor
) -> Part | None:
    batch, growing = _changed(name, first, wider), _changed(name, first, longer)
    same = first.shape == after.shape and torch.equal(first, after)
    if batch is None and growing is None and same:
        return None
    if batch is None:
        raise ConversionError(f"'{name}' of the cache changes, and has no axis for the batch")
    return Part(name, index, tuple(first.shape), first.dtype, batch, growing, fixed=same)


def _changed(name: str, one: torch.Tensor, other: torch.Tensor) -> int | None:
    if one.dim() != other.dim():
        raise ConversionError(f"'{name}' of the cache has another rank at other sizes")
    axes = [axis for axis in range(one.dim()) if one.shape[axis] != other.shape[axis]]
    if len(axes) > 1:
        raise ConversionError(f"'{name}' of the cache changes several sizes at once")
    return axes[0] if axes else None


def _counters(first: Flat, longer: Flat, parts: list[Part]) -> dict[str, tuple[int, int]]:
    """Numbers that count tokens: the tensor and the axis whose size each is."""
    before = {place.name: place.value for place in constants(first.tree)}
    found = {}
    for place in constants(longer.tree):
        value = before.get(place.name)
        if type(value) is not int or value == place.value:
            continue
        sizes = ((part.index, part.growing) for part in parts if part.growing is not None)
        axis = next(((at, axis) for at, axis in sizes if first.tensors[at].shape[axis] == value), None)
        if axis is None:
            raise ConversionError(f"'{place.name}' of the cache counts tokens, and no tensor has that size")
        found[place.name] = axis
    return found


def _settled(tree: Tree, kept: Mapping[int, torch.Tensor], counted: Mapping[str, tuple[int, int]]) -> Tree:
    match tree:
        case Leaf(name=name, index=index) if index in kept:
            return Constant(name, kept[index])
        case Constant(name=name) if name in counted:
            return Size(name, *counted[name])
        case Container(children=children):
            return replace(tree, children=tuple((key, _settled(child, kept, counted)) for key, child in children))
        case _:
            return tree
