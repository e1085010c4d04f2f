"""Modules and other objects of a user's classes, copied with copies of their methods; arrays stay the same."""

from __future__ import annotations

import sys
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import jax

from entrepot.exporters.jax.followed.theirs import is_class_of_user, is_module_of

if TYPE_CHECKING:
    from entrepot.exporters.jax.followed.copies import Copies

_NNX = "flax.nnx"
_MODULES = ("flax.linen", _NNX, "equinox")


def copied_class(copies: Copies, cls: type) -> type:
    """A class of modules, of which a function may make some; JAX may know others, and not their copies."""
    return _with_methods(copies, cls) if is_module_of(cls, *_MODULES) else cls


def copied_object(copies: Copies, value: Any) -> Any:
    """An object, if a method, or something that it holds, is a user's."""
    cls = type(value)
    if is_module_of(cls, _NNX):
        return copied_nnx(copies, value)
    if not (is_module_of(cls, "flax.linen", "equinox") or _is_plain(value)):
        return value
    made_class = _with_methods(copies, cls)
    made: Any = object.__new__(made_class)
    copies.put(value, made)
    held = {name: copies.of(each) for name, each in vars(value).items()}
    if made_class is cls and all(held[name] is each for name, each in vars(value).items()):
        return value
    made.__dict__.update(held)
    return made


def copied_nnx(copies: Copies, module: Any) -> Any:
    """A module of nnx."""
    nnx = sys.modules[_NNX]
    if not isinstance(module, nnx.Module):
        return module
    made: Any = nnx.merge(*nnx.split(module), copy=True)
    follow_nnx(copies, made)
    return made


def follow_nnx(copies: Copies, module: Any) -> None:
    """Let a module of nnx that is nobody else's have methods that are copies."""
    nnx = sys.modules[_NNX]
    for _, part in list(nnx.iter_graph(module)):
        if isinstance(part, nnx.Module):
            for name, value in [*vars(part).items()]:
                if not is_module_of(type(value), "flax") and (new := copies.of(value)) is not value:
                    part.__dict__[name] = new
            object.__setattr__(part, "__class__", _with_methods(copies, type(part)))


def _with_methods(copies: Copies, cls: type) -> type:
    """A class below the given one, whose methods are copies, those of its user's bases included."""
    changed: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        for name, value in vars(base).items():
            new = _method(copies, value)
            if new is not value:
                changed[name] = new
            else:
                changed.pop(name, None)
    if not changed:
        return cls
    named = {"__module__": cls.__module__, "__qualname__": cls.__qualname__}
    made: type = type(cls)(cls.__name__, (cls,), {**named, **changed})
    return made


def _method(copies: Copies, value: Any) -> Any:
    if isinstance(value, FunctionType):
        return copies.of(value) if not value.__name__.startswith("__") or value.__name__ == "__call__" else value
    if isinstance(value, staticmethod | classmethod):
        new = copies.of(value.__func__)
        return value if new is value.__func__ else type(value)(new)
    if isinstance(value, property) and value.fget is not None:
        new = copies.of(value.fget)
        return value if new is value.fget else property(new, value.fset, value.fdel)
    return value


def above(copies: Copies, *args: Any) -> Any:
    """``super``, whose methods are copies."""
    if not args:
        frame = sys._getframe(1)  # noqa: SLF001 - as Python's own does
        variables = frame.f_locals
        args = variables["__class__"], variables[frame.f_code.co_varnames[0]]
    return _Above(copies, super(*args))


class _Above:
    def __init__(self, copies: Copies, real: Any) -> None:
        object.__setattr__(self, "_of", (copies, real))

    def __getattribute__(self, name: str) -> Any:
        copies, real = object.__getattribute__(self, "_of")
        found = getattr(real, name)
        if isinstance(found, MethodType) and name not in _KEPT:
            return MethodType(copies.of(found.__func__), found.__self__)
        return found


_KEPT = frozenset({"__init__", "__new__", "__setattr__", "__getattr__", "__getattribute__"})


def _is_plain(value: Any) -> bool:
    """An object of a user's class, of which JAX knows nothing."""
    cls = type(value)
    plain = (
        "__new__" not in {name for base in cls.__mro__[:-1] for name in vars(base)}
        and hasattr(value, "__dict__")
        and is_class_of_user(cls)
    )
    return plain and bool(jax.tree_util.all_leaves([value]))
