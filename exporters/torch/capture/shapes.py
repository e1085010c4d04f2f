"""``dynamic_shapes`` as ``torch.export.export`` takes them: by argument, by axis, with ``Dim`` and its hints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from entrepot.exporters.axes.groups import Axis, Group, name_groups
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.axes.required import required_group, unvarying
from entrepot.exporters.sample import Sample
from entrepot.exporters.structure import Constant, Container, Flat, Leaf, Tree
from entrepot.exporters.torch.arrays import TORCH
from entrepot.ir.errors import InputError

_HINT = "give names, Dims and hints by argument as to torch.export.export, or use dynamic={'x': {0: 'batch'}}"


@dataclass(frozen=True)
class Wish:
    """What is wanted of an axis.

    Attributes:
        symbol: The name of its size; empty where that is left to us.
        required: Whether it has to vary, or may.
        least: The smallest size it will have.
        most: The largest, if there is one.
    """

    symbol: str
    required: bool
    least: int = 0
    most: int | None = None


def read_shapes(shapes: Any, module: torch.nn.Module, sample: Sample, call: Flat) -> dict[Axis, Wish]:
    """What ``shapes`` wants of each axis that is not to stay as it is.

    Raises:
        InputError: It does not fit the arguments, or contains a dimension derived from another.
    """
    if hasattr(shapes, "dynamic_shapes"):  # a ShapesCollection, or AdditionalInputs
        shapes = shapes.dynamic_shapes(module, tuple(sample.args), dict(sample.kwargs))
    if not isinstance(shapes, Mapping | tuple | list):
        raise InputError(f"dynamic_shapes is a {type(shapes).__name__}", hint=_HINT)
    wishes: dict[Axis, Wish] = {}
    for tree, spec in _by_argument(shapes, call.tree):
        for leaf, axes in _by_tensor(tree, spec):
            for axis, dim in _by_axis(leaf, axes, call.tensors[leaf.index]):
                wish = _wish(dim, f"{leaf.name}.{axis}", call.tensors[leaf.index].shape[axis])
                if wish is not None:
                    wishes[leaf.index, axis] = wish
    _check_ranges(wishes, call)
    return wishes


def _check_ranges(wishes: Mapping[Axis, Wish], call: Flat) -> None:
    for (index, axis), wish in wishes.items():
        size = call.tensors[index].shape[axis]
        if size < wish.least or (wish.most is not None and size > wish.most):
            most = "any" if wish.most is None else wish.most
            raise InputError(
                f"dynamic_shapes asks for {wish.least} to {most}, the sample has {size}",
                value=f"{call.names[index]}.{axis}",
                hint="give a sample within the range",
            )


def shaped_groups(prober: Prober, wishes: Mapping[Axis, Wish], names: Sequence[str]) -> list[Group]:
    """The groups that are wanted: those that are named, and of the others those that the module allows to vary.

    Raises:
        ConversionError: The module does not accept another size of an axis that has to vary.
    """
    members: dict[str, list[Axis]] = {}
    for axis, wish in wishes.items():
        members.setdefault(wish.symbol, []).append(axis)
    hinted = members.pop("", [])
    found = prober.find_groups(list(wishes)) if hinted else []
    for named_axes in members.values():  # an axis that is only hinted at can vary only with a named one
        tied = [group.axes for group in found if not group.axes.isdisjoint(named_axes)]
        named_axes.extend(sorted({axis for group in tied for axis in group if axis in hinted}))
    named = [_named(prober, symbol, axes, wishes, names) for symbol, axes in members.items()]
    owners = frozenset[Axis]().union(*(group.axes for group in named))
    free = [group for group in found if owners.isdisjoint(group.axes)]
    name_groups(free, TORCH, prober.base, names, {group.symbol for group in named})
    for group in free:
        group.required = any(wishes[axis].required for axis in group.axes)
        _limit(group, [wishes[axis] for axis in group.axes])
    groups = [*named, *free]
    varying = {axis for group in groups for axis in group.axes}
    for axis in hinted:
        if wishes[axis].required and axis not in varying:
            raise unvarying(prober, [axis], names)
    return groups


def _named(prober: Prober, symbol: str, axes: list[Axis], wishes: Mapping[Axis, Wish], names: Sequence[str]) -> Group:
    group = required_group(prober, symbol, axes, names)
    _limit(group, [wishes[axis] for axis in axes])
    return group


def _limit(group: Group, wishes: Sequence[Wish]) -> None:
    group.asked = max(wish.least for wish in wishes), min((w.most for w in wishes if w.most is not None), default=None)


def _by_argument(shapes: Any, tree: Tree) -> Iterator[tuple[Tree, Any]]:
    """Every argument with its part of ``shapes``; names are those of ``forward``, and ``*rest`` is one of them."""
    assert isinstance(tree, Container)
    arguments = [child for _, part in tree.children if isinstance(part, Container) for child in part.children]
    positional = dict(tree.children)["args"]
    count = len(positional.children) if isinstance(positional, Container) else 0
    names = [_argument_name(child) if at < count else str(key) for at, (key, child) in enumerate(arguments)]
    if not isinstance(shapes, Mapping):
        if len(shapes) != len(arguments):
            raise InputError(f"dynamic_shapes has {len(shapes)} entries for {len(arguments)} arguments", hint=_HINT)
        yield from ((child, spec) for (_, child), spec in zip(arguments, shapes, strict=True))
        return
    heads = {name.partition(".")[0] for name in names}
    if unknown := shapes.keys() - set(names) - heads:
        raise InputError(f"dynamic_shapes names {sorted(map(str, unknown))}", hint=f"arguments: {', '.join(names)}")
    for name, (_, child) in zip(names, arguments, strict=True):
        head, _, rest = name.partition(".")
        spec = shapes.get(name, shapes.get(head))
        yield child, spec[int(rest)] if rest.isdigit() and name not in shapes and spec is not None else spec


def _argument_name(tree: Tree) -> str:
    """For a container, the prefix of the names of its members."""
    return tree.name if not isinstance(tree, Container) else tree.path


def _by_tensor(tree: Tree, spec: Any) -> Iterator[tuple[Leaf, Any]]:
    match tree:
        case Leaf():
            yield tree, spec
        case Container(children=children) if spec is not None:
            for at, (key, child) in enumerate(children):
                yield from _by_tensor(child, _part(spec, at, key, len(children)))
        case Constant(name=name) if spec is not None:
            raise InputError("dynamic_shapes has axes for something that is not a tensor", value=name, hint=_HINT)


def _part(spec: Any, at: int, key: Any, count: int) -> Any:
    if isinstance(spec, Mapping):
        return spec.get(key)
    if isinstance(spec, tuple | list):
        if len(spec) != count:
            raise InputError(f"dynamic_shapes has {len(spec)} entries where there are {count}: {spec}", hint=_HINT)
        return spec[at]
    return getattr(spec, str(key), None)  # an instance of the argument's dataclass


def _by_axis(leaf: Leaf, axes: Any, tensor: torch.Tensor) -> Iterator[tuple[int, Any]]:
    rank = tensor.dim()
    if axes is None:
        return
    if isinstance(axes, tuple | list) and len(axes) == rank:
        yield from enumerate(axes)
    elif isinstance(axes, Mapping) and all(type(axis) is int and -rank <= axis < rank for axis in axes):
        yield from ((axis % rank, dim) for axis, dim in axes.items())
    else:
        raise InputError(f"dynamic_shapes has {axes} for a tensor of rank {rank}", value=leaf.name, hint=_HINT)


def _wish(dim: Any, place: str, size: int) -> Wish | None:
    hint = getattr(getattr(dim, "type", None), "name", "")
    if dim is None or hint == "STATIC":
        return None
    if type(dim) is int:
        if dim != size:
            raise InputError(f"dynamic_shapes says {dim}, the sample has {size}", value=place)
        return None
    if hint in ("AUTO", "DYNAMIC"):
        return Wish("", hint == "DYNAMIC", dim.min or 0, dim.max)
    if hasattr(dim, "root"):
        raise InputError(
            f"{dim.__name__} is derived from another dimension, which is not supported here",
            value=place,
            hint="give torch.export.Dim.AUTO, or export the program that torch.export.export returns for it",
        )
    if isinstance(dim, torch.export.Dim):
        return Wish(dim.__name__, True, int(dim.min), dim.max if isinstance(dim.max, int) else None)
    if isinstance(dim, str) and dim.isidentifier():
        return Wish(dim, True)
    raise InputError(f"dynamic_shapes has {dim!r} for an axis", value=place, hint=_HINT)
