"""What may be exported: functions of arrays, and the modules of flax and equinox, each as a function with weights."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from entrepot.exporters.jax.followed.copies import Copies
from entrepot.exporters.jax.held import NNX, Held, caller, modules_of
from entrepot.exporters.recognition import Found, surroundings
from entrepot.ir.errors import InputError

_DEEPEST = 6
_LINEN = "flax.linen"
_MODULES = (NNX, "equinox")
_COLLECTIONS = ("params", "batch_stats", "cache", "constants")


@dataclass
class Model:
    """Something that is called with arrays.

    Attributes:
        function: What is called.
        name: What it is called.
        origin: Where it is defined.
        noun: What JAX's users call such a thing.
        weights: Names of the arrays that it holds, by ``id``; the arrays are alive as long as this is.
        followed: What is traced instead, where that differs.
        draws: Whether a call took keys from a generator that it holds.
        following: What calls it by copies of its user's functions, where that is not a copy of ``function``.
    """

    function: Callable[..., Any]
    name: str
    origin: str
    noun: str = "function"
    weights: dict[int, str] = field(default_factory=dict)
    followed: Callable[..., Any] | None = None
    draws: bool = False
    following: Callable[[Copies], Callable[..., Any]] | None = None
    _alive: list[Any] = field(default_factory=list)

    def by_copies(self, copies: Copies) -> Callable[..., Any]:
        """What is traced, by copies of its user's functions."""
        if self.following is not None:
            return self.following(copies)
        made: Callable[..., Any] = copies.of(self.followed or self.function)
        return made

    def name_weights(self, roots: Mapping[str, Any]) -> Model:
        """Name the arrays in some objects by their paths; the object's own name comes first if there are several."""
        found = {root: list(_arrays(value)) for root, value in roots.items()}
        holding = {root: arrays for root, arrays in found.items() if arrays}
        for root, arrays in holding.items():
            for path, array in arrays:
                whole = [root, *path] if root and (len(holding) > 1 or not path) else [*path]
                self.weights.setdefault(id(array), "/".join(whole) or root)
                self._alive.append(array)
        return self


def model_of(obj: Any) -> Model:
    """An object as a function with weights.

    Raises:
        InputError: It cannot be called, or a module comes without its variables.
    """
    found = Found(obj)
    if isinstance(obj, tuple) and len(obj) == 2 and Found(obj[0]).is_of(_LINEN):
        return _applied(functools.partial(obj[0].apply, obj[1]))
    if found.is_of(_LINEN):
        if obj.scope is None:
            raise InputError(
                f"the flax module {type(obj).__name__} has no variables",
                hint="export (module, variables), or module.bind(variables), with variables = module.init(key, x)",
            )
        module, variables = obj.unbind()
        return _applied(functools.partial(module.apply, variables))
    if not callable(obj):
        raise InputError(
            f"a {type(obj).__module__}.{type(obj).__qualname__} cannot be called",
            hint="give a function of arrays, a module of flax or equinox, or (module, variables)",
        )
    if isinstance(obj, functools.partial) and Found(getattr(obj.func, "__self__", None)).is_of(_LINEN):
        return _applied(obj)
    if modules := modules_of(obj):
        return _holding(obj, modules)
    noun = "module" if found.is_of(*_MODULES) else "function"
    return _of(obj, _named(obj), noun).name_weights(dict(_held(obj)))


def _applied(function: Any) -> Model:
    """``apply`` of a flax module with its variables, called as the module's own method is."""
    module = function.func.__self__
    method = function.keywords.get("method") or type(module).__call__
    method = getattr(type(module), method) if isinstance(method, str) else inspect.unwrap(method)

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    own = [*inspect.signature(method).parameters.values()][1:]
    known = [each for each in own if each.name not in function.keywords]
    extra = [each for name, each in inspect.signature(module.apply).parameters.items() if name in ("rngs", "mutable")]
    added = [each for each in extra if each.name not in function.keywords] if not _takes_any(known) else []
    call.__signature__ = inspect.Signature([*known[len(function.args) - 1 :], *added])  # type: ignore[attr-defined]
    return _of(call, module, "module").name_weights({"": _inner(function.args[0])})


def _holding(obj: Any, modules: Sequence[Any]) -> Model:
    """What calls modules of nnx, or is one."""
    held = Held(obj, modules)
    call = caller(held)
    call.__signature__ = inspect.signature(obj)  # type: ignore[attr-defined]
    noun = "module" if any(obj is each for each in modules) else "function"
    model = _of(call, _named(obj), noun).name_weights(
        {"": obj} if any(obj is each for each in modules) else dict(_held(obj))
    )
    model.following, held.model = functools.partial(caller, held), model
    return model


def _takes_any(parameters: list[inspect.Parameter]) -> bool:
    return any(each.kind is each.VAR_KEYWORD for each in parameters)


def _named(obj: Any) -> Any:
    return inspect.unwrap(obj.func if isinstance(obj, functools.partial) else obj)


def _inner(variables: Any) -> Any:
    """Variables without the names of flax's collections, which differ below them."""
    if isinstance(variables, Mapping) and variables.keys() <= set(_COLLECTIONS) and "params" in variables:
        return _Collections([variables[name] for name in _COLLECTIONS if name in variables])
    return variables


class _Collections(list[Any]):
    """Several trees that lie over one another."""


def _of(function: Callable[..., Any], named: Any, noun: str) -> Model:
    described = named if hasattr(named, "__qualname__") else type(named)
    name = getattr(described, "__name__", "function")
    name = "function" if name == "<lambda>" else name
    origin = f"{getattr(described, '__module__', '')}:{getattr(described, '__qualname__', name)}"
    return Model(function, name, origin, noun)


def _held(function: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """What a function holds: arguments bound to it, and the variables around it and around functions that it calls."""
    if depth > _DEEPEST:
        return
    if isinstance(function, functools.partial):
        names = _parameters(function.func)
        for at, value in enumerate(function.args):
            yield (names[at] if at < len(names) else str(at)), _inner(value)
        yield from ((name, _inner(value)) for name, value in function.keywords.items())
        yield from _held(function.func, depth + 1)
        return
    plain = inspect.unwrap(function)
    if Found(plain).is_of(*_MODULES):
        yield "", plain
        return
    for name, value in surroundings(plain).items():
        if isinstance(value, functools.partial) or inspect.isroutine(value) or hasattr(value, "__wrapped__"):
            home = getattr(inspect.unwrap(value), "__module__", None) or ""
            if not home.startswith(("jax", "flax", "equinox", "numpy")):
                yield from _held(value, depth + 1)
        elif not inspect.ismodule(value) and not isinstance(value, type):
            yield name, _inner(value)


def _parameters(function: Any) -> list[str]:
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []


def _arrays(value: Any, depth: int = 0) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Paths and arrays of an object: by JAX's trees, and by attributes where an object is none."""
    if isinstance(value, _Collections):
        for each in value:
            yield from _arrays(each, depth)
        return
    for path, leaf in jax.tree_util.tree_flatten_with_path(value)[0]:
        names = tuple(_key(key) for key in path)
        names = names[:-1] if names and names[-1] == "value" else names
        if isinstance(leaf, jax.Array | np.ndarray):
            yield names, leaf
        elif depth < _DEEPEST and hasattr(leaf, "__dict__") and not callable(leaf) and not inspect.ismodule(leaf):
            for name, part in vars(leaf).items():
                yield from (((*names, name, *rest), array) for rest, array in _arrays(part, depth + 1))


def _key(key: Any) -> str:
    for attribute in ("key", "name", "idx"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute)).strip(".")
    return str(key).strip(".[]'")
