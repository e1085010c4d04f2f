"""Values that variables hold, taken apart into tensors and numbers, and put together again."""

from __future__ import annotations

import copy
import dataclasses
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from entrepot.exporters.torch.rewriting.lists import Tracked
from entrepot.exporters.torch.rewriting.queues import Queue
from entrepot.exporters.torch.rewriting.sequences import Parted
from entrepot.exporters.torch.upstream import numpy_in_torch


class Undefined:
    """What a variable holds that has no value yet."""

    def __repr__(self) -> str:
        return "undefined"


UNDEFINED = Undefined()
DICTS = (dict, OrderedDict, defaultdict)
NUMBERS = (bool, int, float, torch.SymBool, torch.SymInt, torch.SymFloat)


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a leaf of a tree goes."""

    index: int


@dataclasses.dataclass(frozen=True)
class Fork:
    """A container.

    Attributes:
        model: One that looks like it.
        keys: Its keys or fields, if it has any.
        parts: What it contains.
    """

    model: Any
    keys: tuple[Any, ...]
    parts: tuple[Any, ...]


@dataclasses.dataclass(frozen=True)
class Rest:
    """Anything else: an object that is not looked into."""

    value: Any


def spread(value: Any, leaves: list[Any]) -> Any:
    """Take a value apart; its tensors, numbers and undefined variables are appended to ``leaves``."""
    if isinstance(value, (torch.Tensor, Undefined, *NUMBERS)):
        leaves.append(value)
        return Place(len(leaves) - 1)
    keys, parts = _parts(value)
    if parts is None:
        return Rest(value)
    return Fork(value, keys, tuple(spread(part, leaves) for part in parts))


def _parts(value: Any) -> tuple[tuple[Any, ...], list[Any] | None]:
    if isinstance(value, Parted | numpy_in_torch.ndarray):
        return (), list(value.parts()) if isinstance(value, Parted) else [value.tensor]
    if type(value) in (list, tuple, Tracked) or (isinstance(value, tuple) and hasattr(value, "_fields")):
        return (), [*(list if isinstance(value, list) else tuple).__iter__(value)]
    if type(value) in (deque, Queue):
        return (), list(value)
    if isinstance(value, dict):
        return tuple(value), list(value.values())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = tuple(field.name for field in dataclasses.fields(value))
        return names, [getattr(value, name, None) for name in names]
    return (), None


def gather(
    tree: Any, leaves: Sequence[Any], *, copies: dict[int, Any] | None = None, owners: Mapping[int, Any] = {}
) -> Any:
    """Put a value together again.

    Args:
        tree: From ``spread``.
        leaves: What to put into its places.
        copies: Filled with the list or dict that each new one is a copy of, by the identity of the copy.
        owners: Lists and dicts to fill anew, by the identity of the copies that ``tree`` was made of.
    """
    match tree:
        case Place(index):
            return leaves[index]
        case Rest(value):
            return value
        case Fork(model, keys, parts):
            made = [gather(part, leaves, copies=copies, owners=owners) for part in parts]
            twin, owner = owners.get(id(model), (None, None))
            if twin is model:
                if isinstance(owner, Tracked) and isinstance(model, Tracked):
                    owner.front += model.front  # what a branch put there
                return _filled(owner, keys, made)
            new = _joined(model, keys, made)
            if copies is not None:
                copies[id(new)] = new, model  # the copy as well, or another object might get its id
            elif isinstance(new, Tracked) and isinstance(model, Tracked):
                new.front = model.front
            return new


def _filled(owner: Any, keys: tuple[Any, ...], parts: list[Any]) -> Any:
    if isinstance(owner, list):
        owner[:] = parts
    elif type(owner) in (deque, Queue):
        owner.clear()
        owner.extend(parts)
    elif type(owner) in DICTS:
        owner.clear()
        owner.update(zip(keys, parts, strict=True))
    else:
        return _joined(owner, keys, parts)
    return owner


def _joined(model: Any, keys: tuple[Any, ...], parts: list[Any]) -> Any:
    if isinstance(model, Parted):
        return model.joined(parts)
    if isinstance(model, numpy_in_torch.ndarray):
        return numpy_in_torch.ndarray(parts[0])
    if isinstance(model, list):
        return Tracked(parts, model)
    if type(model) in (deque, Queue):
        new = Queue(parts, model.maxlen)
        new.origin = model
        return new
    if isinstance(model, tuple):
        return type(model)(*parts) if hasattr(model, "_fields") else tuple(parts)
    return _keyed(model, dict(zip(keys, parts, strict=True)))


def _keyed(model: Any, items: dict[Any, Any]) -> Any:
    if type(model) is dict:
        return items
    if dataclasses.is_dataclass(model) and isinstance(model, dict):
        return type(model)(**items)
    new = copy.copy(model)
    if isinstance(model, dict):
        new.update(items)
    else:
        vars(new).update(items)
    return new


def paired(first: Any, second: Any) -> Iterator[tuple[Any, Any]]:
    """The places of two trees side by side.

    Raises:
        UnlikeError: They have different structures.
    """
    match first, second:
        case Place(), Place():
            yield first, second
        case Fork(), Fork() if (
            kind(first.model) is kind(second.model)
            and first.keys == second.keys
            and len(first.parts) == len(second.parts)
        ):
            for one, other in zip(first.parts, second.parts, strict=True):
                yield from paired(one, other)
        case Place(), Fork(model, _, (Place() as element,)) if is_element(model):
            yield first, element
        case Fork(model, _, (Place() as element,)), Place() if is_element(model):
            yield element, second
        case Rest(value), Rest(other) if value is other or _same(value, other):
            return
        case (Rest(None), _) | (_, Rest(None)):
            raise AbsentError(f"{_described(first)} becomes {_described(second)}")
        case _:
            raise UnlikeError(f"{_described(first)} becomes {_described(second)}")


def kind(model: Any) -> type:
    """What a container is; lists and queues that know how they are used are lists and queues."""
    if isinstance(model, list):
        return list
    return deque if isinstance(model, Queue) else type(model)


def is_element(value: Any) -> bool:
    """Whether it is a single element of an array of NumPy's, which may stand for a number."""
    return isinstance(value, numpy_in_torch.ndarray) and value.ndim == 0


def places(tree: Any) -> Iterator[Place]:
    """The places of a tree."""
    if isinstance(tree, Place):
        yield tree
    elif isinstance(tree, Fork):
        for part in tree.parts:
            yield from places(part)


def moved(tree: Any, by: int) -> Any:
    """A tree whose leaves are so many places further on."""
    match tree:
        case Place(index):
            return Place(index + by)
        case Fork(model, keys, parts):
            return Fork(model, keys, tuple(moved(part, by) for part in parts))
    return tree


class UnlikeError(Exception):
    """Two structures differ."""


class AbsentError(UnlikeError):
    """One of them has nothing where the other has something, as masks are left out."""


def _same(value: Any, other: Any) -> bool:
    if isinstance(value, torch.nn.Module) or type(value) is not type(other):
        return False
    return bool(value == other)


def _described(tree: Any) -> str:
    match tree:
        case Place():
            return "a tensor or number"
        case Fork(model):
            return f"a {type(model).__name__}"
        case Rest(value):
            return "None" if value is None else f"a {type(value).__name__}"
    return str(tree)
