"""Nested inputs and outputs as a flat list of named tensors, and back.

Frameworks have registries for this (pytrees); a dataclass that nobody registered, or a class whose registration differs
between versions, would fail there. Names come from the forward signature and from the structure: ``batch.user``,
``hidden.0``.
"""

from __future__ import annotations

import copy
import dataclasses
import enum
import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from entrepot.exporters.arrays import NUMPY, Array, Arrays
from entrepot.exporters.sample import Sample
from entrepot.ir.errors import InputError

Tree: TypeAlias = "Leaf | Constant | Container"
_CONSTANTS = (type(None), bool, int, float, str, bytes, enum.Enum)


@dataclass(frozen=True)
class Leaf:
    """A tensor: its name and its place in the flat list."""

    name: str
    index: int


@dataclass(frozen=True)
class Constant:
    """A value that is baked into the graph: a Python scalar, a string, ``None``."""

    name: str
    value: Any


@dataclass(frozen=True)
class Container:
    """A tuple, list, mapping, named tuple or dataclass.

    Attributes:
        kind: ``"tuple"``, ``"list"``, ``"dict"``, ``"namedtuple"`` or ``"dataclass"``.
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


def flatten(value: Any, name: str = "", numbers: frozenset[str] = frozenset(), arrays: Arrays = NUMPY) -> Flat:
    """Take a structure apart; tensors are named by their path below ``name``.

    Args:
        value: The structure.
        name: The prefix of every path.
        numbers: Paths at which a Python number becomes a tensor; while torch captures, every number that depends on a
            size does.
        arrays: What counts as a tensor.

    Raises:
        InputError: Something in it is neither a tensor, a plain container nor a Python scalar.
    """
    flat = Flat(Constant(name, None), [], [], numbers)
    flat.tree = _take_apart(value, name, flat, arrays)
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
    args = tuple(_take_apart(value, name, flat, arrays) for name, value in positional)
    kwargs = tuple((key, _take_apart(value, key, flat, arrays)) for key, value in keyword.items())
    flat.tree = Container(
        "tuple",
        (),
        (
            ("args", Container("tuple", (), tuple(enumerate(args)))),
            ("kwargs", Container("dict", {}, kwargs)),
        ),
    )
    return flat


def unflatten(tree: Tree, tensors: Sequence[Any]) -> Any:
    """Rebuild a structure around other tensors."""
    match tree:
        case Leaf(index=index):
            return tensors[index]
        case Constant(value=value):
            return value
        case Container(kind, prototype, children):
            return _REBUILD[kind](prototype, [(key, unflatten(child, tensors)) for key, child in children])


def places(tree: Tree) -> Iterator[Leaf | Constant]:
    """Everything in a structure that is not a container, in flat order."""
    if isinstance(tree, Container):
        for _, child in tree.children:
            yield from places(child)
    else:
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


def structure_json(inputs: Tree, outputs: Tree, input_names: Mapping[str, str], output_names: Mapping[str, str]) -> str:
    """The structure of inputs and outputs as JSON, for a model's metadata; the names map paths to graph names."""
    return json.dumps({"inputs": _describe(inputs, input_names), "outputs": _describe(outputs, output_names)})


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


def _take_apart(value: Any, name: str, flat: Flat, arrays: Arrays) -> Tree:
    if arrays.is_symbolic(value) or (name in flat.numbers and is_number(value)):
        flat.numbers |= {name}
        value = arrays.of_number(value)
    array = arrays.leaf(value, name)
    if array is not None:
        flat.tensors.append(array)
        flat.names.append(name)
        return Leaf(name, len(flat.tensors) - 1)
    if isinstance(value, (*_CONSTANTS, *arrays.constants)):
        return Constant(name, value)
    kind, items = _items(value, name)
    children = tuple(
        (key, _take_apart(child, f"{name}.{key}" if name else str(key), flat, arrays)) for key, child in items
    )
    plain = type(value) in (tuple, list, dict)
    # an empty prototype keeps no tensors alive
    return Container(kind, type(value)() if plain else value, children, name)


def is_number(value: Any) -> bool:
    """Whether a result is a Python number, which may depend on a size; booleans do not count."""
    return type(value) in (int, float)


def _items(value: Any, name: str) -> tuple[str, list[tuple[Any, Any]]]:
    if isinstance(value, Mapping):
        return "dict", list(value.items())
    if isinstance(value, tuple):
        fields = getattr(value, "_fields", None)
        return (
            ("tuple", list(enumerate(value)))
            if fields is None
            else ("namedtuple", list(zip(fields, value, strict=True)))
        )
    if isinstance(value, list):
        return "list", list(enumerate(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return "dataclass", [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
    raise InputError(
        f"a {type(value).__module__}.{type(value).__qualname__} cannot be an input or output of a graph",
        value=name or None,
        hint="use tensors, Python scalars, None, and tuples, lists, dicts, named tuples or dataclasses of them",
    )


def _rebuild_dict(prototype: Any, items: list[tuple[Any, Any]]) -> Any:
    if type(prototype) is dict:
        return dict(items)
    if dataclasses.is_dataclass(prototype):  # Hugging Face's ModelOutput is both
        make: Any = type(prototype)
        return make(**dict(items))
    result = copy.copy(prototype)
    result.update(items)
    return result


def _rebuild_dataclass(prototype: Any, items: list[tuple[Any, Any]]) -> Any:
    result = copy.copy(prototype)
    for key, value in items:
        object.__setattr__(result, key, value)  # also reaches frozen ones, without running __post_init__ twice
    return result


_REBUILD: dict[str, Callable[[Any, list[tuple[Any, Any]]], Any]] = {
    "tuple": lambda _, items: tuple(value for _, value in items),
    "list": lambda _, items: [value for _, value in items],
    "namedtuple": lambda prototype, items: type(prototype)(**dict(items)),
    "dict": _rebuild_dict,
    "dataclass": _rebuild_dataclass,
}


def _outline(tree: Tree) -> Any:
    match tree:
        case Leaf():
            return "tensor"
        case Constant(value=value):
            return ("constant", type(value), "" if is_number(value) else repr(value))
        case Container(kind, prototype, children):
            return (kind, type(prototype), tuple((key, _outline(child)) for key, child in children))


def _describe(tree: Tree, names: Mapping[str, str]) -> Any:
    match tree:
        case Leaf(name=name):
            return {"tensor": names[name]}
        case Constant(value=value):
            plain = value is None or isinstance(value, bool | int | float | str)
            return {"constant": value if plain else repr(value)}
        case Container(kind, prototype, children):
            items = [[key if isinstance(key, int) else str(key), _describe(child, names)] for key, child in children]
            described: dict[str, Any] = {kind: items}
            if kind in ("namedtuple", "dataclass") or (kind == "dict" and type(prototype) is not dict):
                described["type"] = f"{type(prototype).__module__}:{type(prototype).__qualname__}"
            return described
