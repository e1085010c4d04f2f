"""A copy of a module whose parts run their rewritten ``forward``; it shares the weights with the module."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any

import torch

from entrepot.exporters.containers import Kind, kind_of
from entrepot.exporters.torch.rewriting.functions import as_rewritten, rewritten


def rewritten_copy(module: torch.nn.Module) -> torch.nn.Module | None:
    """The copy; ``None`` if the source of no part is known."""
    copies: dict[int, torch.nn.Module] = {}
    new = _copied(module, copies)
    linking = _Linking(copies)
    for part in module.modules():
        linking.link(part)
    found = [_forward(part) for part in new.modules()]
    for part, forward in zip(new.modules(), found, strict=True):
        if forward is not None:
            part.__dict__["forward"] = forward
    return new if any(each is not None for each in found) else None


def _copied(module: torch.nn.Module, copies: dict[int, torch.nn.Module]) -> torch.nn.Module:
    """A copy of the tree of modules; a part that occurs twice is copied once, and one that is compiled stays itself."""
    if isinstance(module, torch.jit.ScriptModule):
        return module
    if id(module) not in copies:
        new = copies[id(module)] = object.__new__(type(module))
        new.__dict__ = {key: value.copy() if key in _OWN else value for key, value in vars(module).items()}
        for name, part in module._modules.items():  # noqa: SLF001 - as the copying of torch.fx does
            new._modules[name] = None if part is None else _copied(part, copies)
    return copies[id(module)]


_OWN = frozenset({"_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"})
_TABLES = frozenset(vars(torch.nn.Module()))


class _Linking:
    """Replaces parts by their copies in what parts hold besides them: lists, helper objects, methods.

    Args:
        copies: The copy of each part, by the part's identity.
    """

    def __init__(self, copies: Mapping[int, torch.nn.Module]) -> None:
        self._copies = copies
        self._linked: dict[int, Any] = {}

    def link(self, part: torch.nn.Module) -> None:
        """Replace them in what the copy of a part holds."""
        if (copy := self._copies.get(id(part))) is not None:
            vars(copy).update({key: self._of(value) for key, value in vars(part).items() if key not in _TABLES})

    def _of(self, value: Any) -> Any:
        """The value itself if there are no parts in it."""
        if isinstance(value, torch.nn.Module):
            return self._copies.get(id(value), value)
        if isinstance(value, types.MethodType):
            owner = self._of(value.__self__)
            return value if owner is value.__self__ else types.MethodType(value.__func__, owner)
        if id(value) not in self._linked:
            kind = None if type(value).__module__.partition(".")[0] in _CLOSED else kind_of(value)
            self._linked[id(value)] = value if kind is None else self._like(kind, value)
        return self._linked[id(value)]

    def _like(self, kind: Kind, value: Any) -> Any:
        begun = kind.begin(value)
        self._linked[id(value)] = value if begun is None else begun  # what it holds may hold it in turn
        before = kind.parts(value)
        parts = [(key, self._of(part)) for key, part in before]
        same = all(part is old for (_, part), (_, old) in zip(parts, before, strict=True))
        return value if same else kind.finish(value, begun, parts)


_CLOSED = frozenset({"torch", "numpy"})
"""Libraries whose objects hold no parts of a user's module."""


def _forward(part: torch.nn.Module) -> Any:
    if isinstance(part, torch.jit.ScriptModule):
        return None
    own = part.__dict__.get("forward")
    if callable(own):
        new = as_rewritten(own)
        return None if new is own else new
    function = getattr(type(part), "forward", None)
    found = rewritten(function) if isinstance(function, types.FunctionType) else None
    return None if found is None else types.MethodType(found, part)
