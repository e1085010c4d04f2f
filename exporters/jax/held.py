"""Modules of nnx that a function holds, or is a method of: calls get copies, as nnx writes to no others in a trace."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from types import CellType, FunctionType
from typing import TYPE_CHECKING, Any

from entrepot.exporters.jax.followed.classes import follow_nnx
from entrepot.exporters.jax.followed.copies import Copies
from entrepot.exporters.recognition import surroundings
from entrepot.ir.errors import InputError

if TYPE_CHECKING:
    from entrepot.exporters.jax.models import Model

NNX = "flax.nnx"


def modules_of(obj: Any) -> list[Any]:
    """The modules of nnx that an object is, is a method of, or reads from around it."""
    if NNX not in sys.modules:
        return []
    kind = sys.modules[NNX].Module
    around = [obj] if isinstance(obj, kind) else surroundings(inspect.unwrap(obj)).values()
    return list({id(each): each for each in around if isinstance(each, kind)}.values())


class Held:
    """An object that is called with copies of the modules that it holds.

    Args:
        obj: It.
        modules: They.

    Attributes:
        model: Is told of calls that draw random numbers; set once there is one.
    """

    model: Model

    def __init__(self, obj: Any, modules: Sequence[Any]) -> None:
        self._nnx = sys.modules[NNX]
        self._obj, self._modules = obj, modules
        self._graph, self._state = self._nnx.split(tuple(modules))

    def __call__(self, copies: Copies | None, args: Any, kwargs: Mapping[str, Any]) -> Any:
        """Call it; with copies of its user's functions, where some are given.

        Raises:
            InputError: The call changes what a module keeps.
        """
        fresh = self._nnx.merge(self._graph, self._state, copy=True)
        function = _with(self._obj, dict(zip(map(id, self._modules), fresh, strict=True)))
        if copies is not None:
            for module in fresh:
                copies.put(module, module)
                follow_nnx(copies, module)
            function = function if any(function is each for each in fresh) else copies.of(function)
        before = self._contents(fresh)
        result = function(*args, **kwargs)
        changed = {path for path, value in self._contents(fresh).items() if before.get(path, value) is not value}
        random = {path for path in changed if isinstance(_at(fresh, path), self._nnx.RngState)}
        self.model.draws = self.model.draws or bool(random)
        if changed - random:
            raise InputError(
                f"each call of the module changes its {'/'.join(map(str, min(changed - random, key=str)[1:]))}",
                hint="call module.eval() first; or take what it keeps as an argument, and return what it becomes",
            )
        return result

    def _contents(self, modules: Any) -> dict[tuple[Any, ...], Any]:
        return {path: each.get_value() for path, each in self._nnx.to_flat_state(self._nnx.state(modules))}


def _with(obj: Any, fresh: Mapping[int, Any]) -> Any:
    """A module, a method or a function, with other modules in the places of its own."""
    if id(obj) in fresh:
        return fresh[id(obj)]
    function = inspect.unwrap(obj)
    owner = getattr(function, "__self__", None)
    if owner is not None:
        return getattr(fresh[id(owner)], function.__name__) if id(owner) in fresh else obj
    if not isinstance(function, FunctionType):
        return obj
    inside = {name: fresh.get(id(value), value) for name, value in function.__globals__.items()}
    cells = tuple(_cell(each, fresh) for each in function.__closure__ or ())
    made = FunctionType(function.__code__, inside, function.__name__, function.__defaults__, cells)
    made.__kwdefaults__, made.__qualname__ = function.__kwdefaults__, function.__qualname__
    return made


def _cell(cell: CellType, fresh: Mapping[int, Any]) -> CellType:
    try:
        found = fresh.get(id(cell.cell_contents))
    except ValueError:  # a variable that has no value yet
        return cell
    return cell if found is None else CellType(found)


def _at(modules: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        modules = modules[key] if isinstance(key, int) else getattr(modules, key)
    return modules


def caller(held: Held, copies: Copies | None = None) -> Callable[..., Any]:
    """What calls it like a function."""
    return lambda *args, **kwargs: held(copies, args, kwargs)
