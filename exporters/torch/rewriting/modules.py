"""A copy of a module whose parts run their rewritten ``forward``; it shares the weights with the module."""

from __future__ import annotations

import types
from typing import Any

import torch

from entrepot.exporters.torch.rewriting.functions import as_rewritten, rewritten
from entrepot.exporters.torch.rewriting.linking import Linking
from entrepot.exporters.torch.scripts.parts import opened
from entrepot.exporters.torch.scripts.reader import Reader


def rewritten_copy(module: torch.nn.Module) -> torch.nn.Module | None:
    """The copy; ``None`` if the source of no part is known."""
    copies: dict[int, torch.nn.Module] = {}
    new = _copied(module, copies)
    linking = Linking(copies)
    for part in module.modules():
        linking.link(part)
    found = [_forward(part) for part in new.modules()]
    for part, forward in zip(new.modules(), found, strict=True):
        if forward is not None:
            part.__dict__["forward"] = forward
    return new if any(each is not None for each in found) else None


def _copied(module: torch.nn.Module, copies: dict[int, torch.nn.Module]) -> torch.nn.Module:
    """A copy of the tree of modules; a part that occurs twice is copied once, and one that is scripted is opened."""
    if isinstance(module, torch.jit.ScriptModule):
        return copies.setdefault(id(module), opened(module))
    if id(module) not in copies:
        new = copies[id(module)] = object.__new__(type(module))
        new.__dict__ = {key: value.copy() if key in _OWN else value for key, value in vars(module).items()}
        for name, part in module._modules.items():  # noqa: SLF001 - as the copying of torch.fx does
            new._modules[name] = None if part is None else _copied(part, copies)
    return copies[id(module)]


_OWN = frozenset({"_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"})


def _forward(part: torch.nn.Module) -> Any:
    if isinstance(part, Reader):  # which runs a graph, and nothing that a user wrote
        return None
    own = part.__dict__.get("forward")
    if callable(own):
        new = as_rewritten(own)
        return None if new is own else new
    function = getattr(type(part), "forward", None)
    found = rewritten(function) if isinstance(function, types.FunctionType) else None
    return None if found is None else types.MethodType(found, part)
