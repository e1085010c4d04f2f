"""What modules store in themselves while they run: blocks that are put into the graph take it along as variables."""

from __future__ import annotations

import contextlib
import dis
import functools
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from entrepot.exporters.torch.rewriting.apart import Apart
from entrepot.exporters.torch.rewriting.held import with_held
from entrepot.exporters.torch.rewriting.links import ListError
from entrepot.exporters.torch.rewriting.trees import DICTS, UNDEFINED, UnlikeError
from entrepot.exporters.torch.running.contents import contents, is_kept, put_back
from entrepot.exporters.torch.running.objects import HeldObjects

_OWN = frozenset(vars(torch.nn.Module()))
"""What every module has: tables of weights, parts and hooks, which a capture may have exchanged."""

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Attribute:
    """An attribute of a module."""

    module: torch.nn.Module
    name: str

    def get(self) -> Any:
        """Its value."""
        return vars(self.module).get(self.name, UNDEFINED)

    def put(self, value: Any) -> None:
        """Change its value."""
        if value is UNDEFINED:
            vars(self.module).pop(self.name, None)
        else:
            vars(self.module)[self.name] = value


class StoresError(Exception):
    """A block stores something in modules that is not among its variables.

    Attributes:
        attributes: Where.
    """

    def __init__(self, attributes: Sequence[Attribute]) -> None:
        super().__init__(", ".join(each.name for each in attributes))
        self.attributes = attributes


class Stores:
    """The attributes of modules, as they are now."""

    def __init__(self, modules: Sequence[torch.nn.Module]) -> None:
        self._modules = modules
        self._before = [
            {name: (vars(module)[name], contents(vars(module)[name])) for name in _names(module)} for module in modules
        ]

    def now(self) -> Stores:
        """Those of the same modules, later."""
        return Stores(self._modules)

    def changed(self) -> list[Attribute]:
        """Those that have been written to since, and that the code of some module reads."""
        found = [
            Attribute(module, name)
            for module, before in zip(self._modules, self._before, strict=True)
            for name in dict.fromkeys((*before, *_names(module)))
            if _is_new(vars(module).get(name, UNDEFINED), *before.get(name, (UNDEFINED, None)))
        ]
        found = [each for each in found if not _are_weights(each.get(), each.module)]
        if not found:
            return found
        read = set[str]().union(*(_names_read(kind) for kind in dict.fromkeys(map(type, self._modules))))
        return [each for each in found if each.name in read]

    def restore(self) -> None:
        """Put everything back."""
        for module, before in zip(self._modules, self._before, strict=True):
            for name in set(_names(module)) - before.keys():
                del vars(module)[name]
            for name, (value, held) in before.items():
                vars(module)[name] = value
                put_back(value, held)


@dataclass
class _Calls:
    """The calls of a module that is captured.

    Attributes:
        first: What it stores before all of them.
        begun: What it stored as the present one began, which is the same but for what a capture exchanges.
    """

    first: Stores
    begun: Stores


_CALLS: ContextVar[_Calls | None] = ContextVar("_CALLS", default=None)


@contextlib.contextmanager
def stores_followed(module: torch.nn.Module) -> Iterator[None]:
    """Inside, captures of a module and its bodies follow what it stores in itself."""
    first = Stores(list(module.modules()))
    token = _CALLS.set(_Calls(first, first))
    try:
        yield
    finally:
        _CALLS.reset(token)


def forget_stores() -> None:
    """Put back what the calls so far have stored; to be called before a capture exchanges anything."""
    if (calls := _CALLS.get()) is not None:
        calls.first.restore()


@contextlib.contextmanager
def stores_begun(flat: torch.nn.Module) -> Iterator[None]:
    """Inside, what a call of ``flat`` stores is told from what was there as it began."""
    calls = _CALLS.get()
    if calls is None:
        yield
        return

    def begin(*_: Any) -> None:
        calls.begun = calls.first.now()

    hook = flat.register_forward_pre_hook(begin)
    try:
        yield
    finally:
        hook.remove()


@contextlib.contextmanager
def stores_put_back(flat: torch.nn.Module) -> Iterator[None]:
    """Inside, a capture may store what it likes in the parts of ``flat``.

    Afterwards, tensors without values must meet no other call: a comparison with their sizes would be one more
    condition of the capture.
    """
    parts = [part for part in flat.modules() if part is not flat]
    before = Stores(parts)
    objects = HeldObjects(value for part in parts for name, value in vars(part).items() if name not in _OWN)
    try:
        yield
    finally:
        before.restore()
        objects.restore()


def stores_now() -> Stores | None:
    """What the module that is captured stores at the moment; ``None`` where that is not followed."""
    calls = _CALLS.get()
    return None if calls is None else calls.first.now()


def followed(state: Any, run: Callable[[Any], _Result], *, give_up: bool) -> _Result:
    """Put a block into the graph, with what modules store and functions hold among its variables, and lists as needed.

    Args:
        state: The variables.
        run: Is called with them.
        give_up: Whether to leave out what is stored, if it cannot be followed.

    Raises:
        UnlikeError: As ``run`` raises it.
    """
    calls, state = _CALLS.get(), with_held(state)
    stored = [] if calls is None else calls.begun.changed()
    wider = _with(state, stored) if stored else state
    while True:
        try:
            return run(wider)
        except StoresError as error:
            new = [each for each in error.attributes if each not in stored]
            if not new:  # what is put into it becomes something else
                return run(state.without_stores())
            stored = [*stored, *new]
            wider = _with(wider, new)
        except UnlikeError as error:
            if isinstance(error, ListError) and _in_other_form(wider, error):
                continue
            if wider is state or not give_up:
                raise
            return run(state.without_stores())


def _with(state: Any, attributes: Sequence[Attribute]) -> Any:
    def put(values: Sequence[Any]) -> None:
        for each, value in zip(attributes, values, strict=True):
            each.put(value)

    names = [each.name for each in attributes]
    return state.with_more(names, lambda: tuple(each.get() for each in attributes), put)


def _in_other_form(state: Any, error: ListError) -> bool:
    """Whether the list is one of the variables, or in a list or dict among them, which then hold its other form."""
    before = state.get()
    if any(value is error.list for value in before):
        form = error.form()
        state.put(tuple(form if value is error.list else value for value in before))
        return True
    return any(_exchanged(value, error) for value in before)


def _exchanged(owner: Any, error: ListError) -> bool:
    """Whether the list is in another list or a dict; exchange it there."""
    if isinstance(owner, Apart):
        return _exchanged(owner.lists, error)
    if type(owner) in DICTS:
        pairs = list(owner.items())
    elif isinstance(owner, list):
        pairs = list(enumerate(list.__iter__(owner)))
    else:
        return False
    place = next((key for key, value in pairs if value is error.list), None)
    if place is None:
        return any(_exchanged(value, error) for _, value in pairs)
    owner[place] = error.form()
    return True


def _names(module: torch.nn.Module) -> list[str]:
    return [name for name in vars(module) if name not in _OWN]


def _are_weights(value: Any, module: torch.nn.Module) -> bool:
    """Whether it is a list of the module's own weights, as recurrent layers keep, which a capture exchanges."""
    if not isinstance(value, list) or not value:
        return False
    known = {id(weight) for weight in module.parameters(recurse=False)}
    return all(id(each() if isinstance(each, weakref.ref) else each) in known for each in list.__iter__(value))


def _is_new(now: Any, value: Any, held: Any) -> bool:
    return now is not value or (held is not None and not is_kept(now, held))


@functools.cache
def _names_read(kind: type) -> frozenset[str]:
    """The attributes that the code of a class reads, of whatever."""
    functions = [value for each in kind.__mro__ if each is not torch.nn.Module for value in vars(each).values()]
    return frozenset(name for function in functions for name in _loaded(_code(function)))


def _code(value: Any) -> types.CodeType | None:
    if isinstance(value, property):
        value = value.fget
    value = getattr(value, "__func__", value)
    return value.__code__ if isinstance(value, types.FunctionType) else None


def _loaded(code: types.CodeType | None) -> Iterator[str]:
    if code is None:
        return
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            yield step.argval
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _loaded(inner)
