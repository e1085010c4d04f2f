"""The tree of a structure: where its tensors and constants are, and what else is made of them."""

from __future__ import annotations

import copy
import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from entrepot.exporters.arrays import Array
from entrepot.exporters.containers import KINDS

Tree: TypeAlias = "Leaf | Constant | Size | Shared | Container"
_COMPARED = (type(None), bool, complex, str, bytes, enum.Enum)  # numbers may depend on a size, the rest has no equality


@dataclass(frozen=True)
class Leaf:
    """A tensor.

    Attributes:
        name: Its place in the structure.
        index: Its place in the flat list.
        inside: Whether it is part of the state of an object.
    """

    name: str
    index: int
    inside: bool = False


@dataclass(frozen=True)
class Constant:
    """A value that is baked into the graph: a Python scalar, a string, ``None``, a function.

    Attributes:
        name: Its place.
        value: What is there.
        inside: Whether it is part of the state of an object.
    """

    name: str
    value: Any
    inside: bool = False


@dataclass(frozen=True)
class Size:
    """A Python number that is the size of an axis.

    Attributes:
        name: Its place.
        index: The tensor's place in the flat list.
        axis: Which of its axes.
    """

    name: str
    index: int
    axis: int


@dataclass(frozen=True)
class Shared:
    """Another reference to a container.

    Attributes:
        name: Its place.
        path: The place where the container itself is.
    """

    name: str
    path: str


@dataclass(frozen=True)
class Container:
    """A tuple, list, mapping, named tuple, dataclass or any object with attributes.

    Attributes:
        kind: ``"tuple"``, ``"list"``, ``"dict"``, ``"namedtuple"``, ``"dataclass"`` or ``"object"``.
        prototype: The object that was flattened; ``unflatten`` makes another of its class.
        children: Key, index or field name, with its subtree.
        path: Where it is in the structure.
    """

    kind: str
    prototype: Any
    children: tuple[tuple[Any, Tree], ...]
    path: str = ""


@dataclass
class Flat:
    """The tensors of a structure and how it is built from them.

    Attributes:
        tree: The structure.
        tensors: In the order of the tree.
        names: Their names.
        numbers: The names of those that were Python numbers.
    """

    tree: Tree
    tensors: list[Array]
    names: list[str]
    numbers: frozenset[str] = frozenset()


def unflatten(tree: Tree, tensors: Sequence[Any]) -> Any:
    """Rebuild a structure around other tensors; objects are new, so nothing done to them reaches the first ones."""
    return _rebuilt(tree, tensors, {})


def _rebuilt(tree: Tree, tensors: Sequence[Any], made: dict[str, Any]) -> Any:
    match tree:
        case Leaf(index=index):
            return tensors[index]
        case Constant(value=value):
            return copy.copy(value) if isinstance(value, set) else value
        case Size(index=index, axis=axis):
            return tensors[index].shape[axis]
        case Shared(path=path):
            return made[path]
        case Container(kind, prototype, children, path):
            begun = made[path] = KINDS[kind].begin(prototype)
            parts = [(key, _rebuilt(child, tensors, made)) for key, child in children]
            made[path] = KINDS[kind].finish(prototype, begun, parts)
            return made[path]


def places(tree: Tree) -> Iterator[Leaf | Constant]:
    """Every tensor and every constant of a structure, in flat order."""
    if isinstance(tree, Container):
        for _, child in tree.children:
            yield from places(child)
    elif isinstance(tree, Leaf | Constant):
        yield tree


def leaves(tree: Tree) -> Iterator[Leaf]:
    """Every tensor place of a structure, in flat order."""
    return (place for place in places(tree) if isinstance(place, Leaf))


def constants(tree: Tree) -> Iterator[Constant]:
    """Every place of a structure that does not hold a tensor."""
    return (place for place in places(tree) if isinstance(place, Constant))


def same_structure(first: Tree, second: Tree) -> bool:
    """Whether two results have the same structure and constants, except for numbers: those may depend on a size."""
    return _outline(first) == _outline(second)


def below(name: str, key: Any) -> str:
    """The path of a part of what is at ``name``."""
    return f"{name}.{key}" if name else str(key)


def is_number(value: Any) -> bool:
    """Whether a result is a Python number, which may depend on a size; booleans do not count."""
    return type(value) in (int, float)


def _outline(tree: Tree) -> Any:
    match tree:
        case Leaf():
            return "tensor"
        case Constant(value=value):
            return ("constant", type(value), repr(value) if isinstance(value, _COMPARED) else "")
        case Size(index=index, axis=axis):
            return ("size", index, axis)
        case Shared(path=path):
            return ("shared", path)
        case Container(kind, prototype, children):
            made = type(prototype)  # by name: TorchScript makes the class of a named tuple anew at each call
            return (kind, made.__module__, made.__qualname__, tuple((key, _outline(child)) for key, child in children))
