"""Nested inputs and outputs as a flat list of named tensors, and back.

Frameworks have registries for this (pytrees); a class that nobody registered, or whose registration differs between
versions, would fail there. Here every object is taken apart by ``containers.py``. Names come from the forward signature
and from the structure: ``batch.user``, ``hidden.0``, ``past.layers.0.keys``.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from entrepot.exporters.arrays import NUMPY, Arrays
from entrepot.exporters.containers import Kind, is_plain, kind_of
from entrepot.exporters.sample import Sample
from entrepot.exporters.tree import (
    Constant,
    Container,
    Flat,
    Leaf,
    Shared,
    Tree,
    below,
    constants,
    is_number,
    leaves,
    places,
    same_structure,
    unflatten,
)
from entrepot.ir.errors import InputError

__all__ = [
    "Constant",
    "Container",
    "Flat",
    "Leaf",
    "Shared",
    "Tree",
    "constants",
    "flatten",
    "flatten_call",
    "flatten_named",
    "is_number",
    "leaves",
    "places",
    "same_structure",
    "unflatten",
]

_CONSTANTS = (type(None), bool, int, float, complex, str, bytes, enum.Enum)


def flatten(value: Any, name: str = "", numbers: frozenset[str] = frozenset(), arrays: Arrays = NUMPY) -> Flat:
    """Take a structure apart; tensors are named by their path below ``name``.

    Args:
        value: The structure.
        name: The prefix of every path.
        numbers: Paths at which a Python number becomes a tensor; while torch captures, every number that depends on a
            size does.
        arrays: What counts as a tensor.

    Raises:
        InputError: Something in it is neither a tensor, a container, an object with attributes nor a Python scalar.
    """
    flat = Flat(Constant(name, None), [], [], numbers)
    flat.tree = _Walk(flat, arrays).take_apart(value, name)
    return flat


def flatten_call(sample: Sample, forward: Callable[..., Any], arrays: Arrays = NUMPY) -> Flat:
    """Take the arguments of a call apart, in the order of the signature of ``forward``.

    Raises:
        InputError: The arguments do not fit the signature, or contain something that cannot be an input.
    """
    bound = _bind(sample, forward)
    return flatten_named(list(_named_args(bound)), bound.kwargs, arrays)


def flatten_named(positional: Sequence[tuple[str, Any]], keyword: Mapping[str, Any], arrays: Arrays = NUMPY) -> Flat:
    """Take named arguments apart; the tree makes a pair of a tuple and a dict."""
    flat = Flat(Constant("", None), [], [])
    walk = _Walk(flat, arrays, opaque=True)
    args = tuple(walk.take_apart(value, name) for name, value in positional)
    kwargs = tuple((key, walk.take_apart(value, key)) for key, value in keyword.items())
    flat.tree = Container(
        "tuple",
        (),
        (
            ("args", Container("tuple", (), tuple(enumerate(args)))),
            ("kwargs", Container("dict", {}, kwargs)),
        ),
    )
    return flat


def flatten_again(tree: Tree, args: Sequence[Any], kwargs: Mapping[str, Any], arrays: Arrays = NUMPY) -> Flat:
    """Take the arguments of a call apart once more, after it perhaps changed what is in them."""
    return flatten_named(list(zip(_parameters(tree), args, strict=True)), kwargs, arrays)


def _parameters(tree: Tree) -> list[str]:
    """The names of the positional arguments, as ``flatten_named`` was given them."""
    match tree:
        case Container(children=((_, Container(children=positional)), _)):
            return [part.path if isinstance(part, Container) else part.name for _, part in positional]
        case _:
            return []


def _bind(sample: Sample, forward: Callable[..., Any]) -> inspect.BoundArguments:
    signature = inspect.signature(forward)
    try:
        return signature.bind(*sample.args, **sample.kwargs)
    except TypeError as error:
        raise InputError(
            f"the sample does not fit forward{signature}: {error}",
            hint="give a tuple of positional arguments, a dict of keyword arguments, or Sample(args, kwargs); "
            "a dict that is itself one argument goes into a tuple: ({...},)",
        ) from error


def _named_args(bound: inspect.BoundArguments) -> Iterator[tuple[str, Any]]:
    """Positional arguments with the names of their parameters; ``*rest`` gives ``rest.0``, ``rest.1``, ..."""
    remaining = list(bound.args)
    for name, parameter in bound.signature.parameters.items():
        if not remaining or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD):
            return
        if parameter.kind is parameter.VAR_POSITIONAL:
            yield from ((f"{name}.{index}", value) for index, value in enumerate(remaining))
            return
        yield name, remaining.pop(0)


class _Walk:
    """One structure that is being taken apart.

    Args:
        flat: What was found so far.
        arrays: What counts as a tensor.
        opaque: Whether a value that has neither parts nor tensors is a constant wherever it is, instead of only as the
            attribute of an object.
    """

    def __init__(self, flat: Flat, arrays: Arrays, *, opaque: bool = False) -> None:
        self._flat, self._arrays, self._opaque = flat, arrays, opaque
        self._seen: dict[int, tuple[str, Any]] = {}  # with the values: an id is theirs as long as they live
        self._above: set[int] = set()

    def take_apart(self, value: Any, name: str, *, inside: bool = False) -> Tree:
        """The tree of a value at a place, ``inside`` of an object or not."""
        leaf = self._leaf(value, name, inside)
        if leaf is not None:
            return leaf
        if isinstance(value, (*_CONSTANTS, *self._arrays.constants)):
            return Constant(name, value, inside)
        kind = kind_of(value)
        if kind is None:
            return self._constant(value, name, inside)
        inside = inside or kind.name == "object"
        if (inside or kind.name == "dataclass") and kind.changeable and id(value) in self._seen:
            return Shared(name, self._seen[id(value)][0])
        if id(value) in self._above:
            raise InputError("it contains itself", value=name or None, hint="give the tensors themselves")
        return self._container(kind, value, name, inside)

    def _container(self, kind: Kind, value: Any, name: str, inside: bool) -> Container:
        self._seen[id(value)] = name, value
        self._above.add(id(value))
        parts = [(key, self.take_apart(part, below(name, key), inside=inside)) for key, part in kind.parts(value)]
        self._above.discard(id(value))
        # an empty prototype keeps no tensors alive
        return Container(kind.name, type(value)() if is_plain(value) else value, tuple(parts), name)

    def _leaf(self, value: Any, name: str, inside: bool) -> Leaf | None:
        flat, arrays = self._flat, self._arrays
        if arrays.is_symbolic(value) or (name in flat.numbers and is_number(value)):
            flat.numbers |= {name}
            value = arrays.of_number(value)
        array = arrays.leaf(value, name)
        if array is None:
            return None
        flat.tensors.append(array)
        flat.names.append(name)
        return Leaf(name, len(flat.tensors) - 1, inside)

    def _constant(self, value: Any, name: str, inside: bool) -> Constant:
        """A value that nothing is known about, except that it holds no tensor that could be reached."""
        members = value if isinstance(value, set | frozenset) else ()
        hidden = isinstance(value, Iterator) or any(self._arrays.leaf(member, name) is not None for member in members)
        if hidden or not (inside or self._opaque):
            raise InputError(
                f"a {type(value).__module__}.{type(value).__qualname__} cannot be an input or output of a graph",
                value=name or None,
                hint="use tensors, Python scalars, None, and tuples, lists, dicts or objects of them",
            )
        return Constant(name, value, inside)
