"""Copies of a user's functions, in which some names stand for others.

A copy has the code of the function, or the same spelled otherwise, and globals of its own: those of the function, with
copies of the user's other functions, and ``answers.py`` for Python's, NumPy's and JAX's. Nothing is put in the place of
anything outside, so that no other thread, and no later call, sees any of it.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Iterator
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, ClassVar

import jax

from entrepot.exporters.jax.followed.answers import (
    answers,
    own_builtins,
    quotient,
    remainder,
    squeezed,
    whole,
    whole_product,
    whole_quotient,
)
from entrepot.exporters.jax.followed.classes import above, copied_class, copied_object
from entrepot.exporters.jax.followed.equalities import Equalities
from entrepot.exporters.jax.followed.respelling import constants, respelled
from entrepot.exporters.jax.followed.theirs import is_of_user

_ANSWERED = frozenset({"jax", "numpy", "math", "operator"})
"""Whose modules have functions that others stand for."""
_OF_NUMPY = "jax._src.numpy."
"""Functions of JAX that are written as a user's are."""
_CACHED = type(functools.lru_cache(len))
_JITTED = type(jax.jit(len))


class Copies:
    """The copies that one trace is made with, by what they are copies of.

    Attributes:
        equalities: What they compare by.
    """

    def __init__(self) -> None:
        self.equalities = Equalities()
        self._known: dict[int, tuple[Any, Any]] = {}
        self._insides: dict[int, dict[str, Any]] = {}
        self._builtins = {**own_builtins(), "super": functools.partial(above, self)}

    def of(self, value: Any) -> Any:
        """What stands for a value in a copy; mostly the value itself."""
        answer = answers().get(id(value))
        if answer is not None:
            return answer
        if id(value) not in self._known:
            self.put(value, value)
            self.put(value, self._made(value))
        return self._known[id(value)][1]

    def put(self, value: Any, made: Any) -> None:
        """Say what stands for a value, before all that it refers to is known."""
        self._known[id(value)] = value, made

    def _made(self, value: Any) -> Any:
        for kind, make in self._MAKERS.items():
            if isinstance(value, kind):
                return make(self, value)
        return copied_object(self, value)

    def _function(self, function: FunctionType) -> FunctionType:
        around = function.__globals__
        if not (is_of_user(around) or _is_of_numpy(around)):
            return self._holding(function)
        code = respelled(function.__code__, comparisons=is_of_user(around))
        if code is function.__code__ and is_of_user(around):
            self.equalities.unread(constants(code))
        inside = self._insides.setdefault(id(around), self._inside(around))
        cells = [CellType() for _ in function.__closure__ or ()]
        made = _bound(function, code, inside, self._closure(function, cells))
        self.put(function, made)
        for name in set(_names(code)) & around.keys() - inside.keys():
            inside[name] = self._in_globals(around, around[name])
        self._fill(function, cells)
        made.__defaults__ = self.of(function.__defaults__)
        made.__kwdefaults__ = self.of(function.__kwdefaults__)
        return made

    def _inside(self, around: dict[str, Any]) -> dict[str, Any]:
        special = {name: value for name, value in around.items() if name.startswith("__")}
        return {
            **special,
            "__builtins__": self._builtins,
            "_ep_squeezed": squeezed,
            "_ep_remainder": remainder,
            "_ep_whole": whole,
            "_ep_quotient": quotient,
            "_ep_whole_quotient": whole_quotient,
            "_ep_whole_product": whole_product,
            **self.equalities.functions(),
        }

    def _holding(self, function: FunctionType) -> FunctionType:
        """A function of a library; a copy if it holds one of a user's, as what ``jax.vmap`` returns does."""
        held = [_content(cell) for cell in function.__closure__ or ()]
        if all(self.of(each) is each for each in held):
            return function
        cells = [CellType() for _ in held]
        made = _bound(function, function.__code__, function.__globals__, self._closure(function, cells))
        self._fill(function, cells)
        return made

    def _closure(self, function: FunctionType, cells: list[CellType]) -> tuple[CellType, ...]:
        own = zip(function.__code__.co_freevars, function.__closure__ or (), cells, strict=True)
        return tuple(cell if name == "__class__" else new for name, cell, new in own)

    def _fill(self, function: FunctionType, cells: list[CellType]) -> None:
        for cell, new in zip(function.__closure__ or (), cells, strict=True):
            content = _content(cell)
            if content is not _EMPTY:
                new.cell_contents = self.of(content)

    def _in_globals(self, around: dict[str, Any], value: Any) -> Any:
        if isinstance(value, ModuleType) and not is_of_user(around):
            return self.of(value) if f"{value.__name__}.".startswith((_OF_NUMPY, "jax.numpy.")) else value
        return self.of(value)

    def _module(self, module: ModuleType) -> ModuleType:
        root = module.__name__.partition(".")[0]
        return _Module(self, module) if root in _ANSWERED or is_of_user(vars(module)) else module

    def _wrapping(self, function: Any) -> Any:
        """What is compiled, or cached, is traced all the same."""
        made = self.of(function.__wrapped__)
        return function if made is function.__wrapped__ else made

    def _with_gradient(self, function: Any) -> Any:
        inner = self.of(function.fun)
        if inner is function.fun:
            return function
        made = copy.copy(function)
        made.fun = inner
        return made

    def _method(self, method: MethodType) -> Any:
        function, owner = self.of(method.__func__), self.of(method.__self__)
        same = function is method.__func__ and owner is method.__self__
        return method if same else MethodType(_of_class(owner, method, function), owner)

    def _partial(self, function: functools.partial[Any]) -> functools.partial[Any]:
        parts = self.of(function.func), self.of(function.args), self.of(function.keywords)
        if parts[0] is function.func and parts[1] is function.args and parts[2] is function.keywords:
            return function
        return functools.partial(parts[0], *parts[1], **parts[2])

    def _sequence(self, values: Any) -> Any:
        make = getattr(values, "_make", type(values))  # of tuples whose items have names
        if make is type(values) not in (list, tuple):
            return values
        made = [self.of(each) for each in values]
        return values if all(map(_is, made, values)) else make(made)

    def _mapping(self, values: Any) -> Any:
        if type(values) is not dict:
            return values
        made = {key: self.of(each) for key, each in values.items()}
        return values if all(map(_is, made.values(), values.values())) else made

    _MAKERS: ClassVar[dict[Any, Callable[[Copies, Any], Any]]] = {
        FunctionType: _function,
        MethodType: _method,
        ModuleType: _module,
        (_JITTED, _CACHED): _wrapping,
        (jax.custom_jvp, jax.custom_vjp): _with_gradient,
        functools.partial: _partial,
        (list, tuple): _sequence,
        dict: _mapping,
        type: copied_class,
    }


class _Module(ModuleType):
    """A module, of which copies see the functions."""

    def __init__(self, copies: Copies, module: ModuleType) -> None:
        super().__init__(module.__name__)
        self._copies, self._module = copies, module

    def __getattr__(self, name: str) -> Any:
        return self._copies.of(getattr(self._module, name))


def _is_of_numpy(around: dict[str, Any]) -> bool:
    return str(around.get("__name__", "")).startswith(_OF_NUMPY)


def _bound(
    function: FunctionType, code: CodeType, inside: dict[str, Any], closure: tuple[CellType, ...]
) -> FunctionType:
    made = FunctionType(code, inside, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__, made.__module__ = function.__qualname__, function.__module__
    made.__annotations__ = function.__annotations__
    made.__dict__.update(vars(function))
    return made


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _names(each)


_EMPTY = inspect.Parameter.empty


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a variable that has no value yet
        return _EMPTY


def _is(one: Any, other: Any) -> bool:
    return one is other


def _of_class(owner: Any, method: MethodType, function: Any) -> Any:
    """The method as the copy's class has it, if it does."""
    own = getattr(type(owner), method.__func__.__name__, None)
    return own if isinstance(own, FunctionType) and type(owner) is not type(method.__self__) else function
