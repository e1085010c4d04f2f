"""Which weights a part of a program reads: its body is captured beside the modules that own these, not beside all."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Collection, Iterator
from contextvars import ContextVar
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from entrepot.exporters.torch.quantised.packed import Held, Packed
from entrepot.exporters.torch.upstream import pytree

_HOLDERS = (Packed, Held, torch.ScriptObject)
_ANY = "any"
"""Stands for weights that are not seen: a weight of the outermost module, which comes with all others."""

_NAMED: ContextVar[dict[int, set[str]] | None] = ContextVar("_NAMED", default=None)


@contextlib.contextmanager
def named_weights(flat: torch.nn.Module) -> Iterator[None]:
    """Inside, what a call of ``flat`` reads is known by the names in its only part."""
    found: dict[int, set[str]] = {}

    def begin(module: torch.nn.Module, _: Any) -> None:
        found.clear()
        weights = (module.named_parameters(remove_duplicate=False), module.named_buffers(remove_duplicate=False))
        for name, weight in itertools.chain(*weights):
            found.setdefault(id(weight), set()).add(name.partition(".")[2])

    token, hook = _NAMED.set(found), flat.register_forward_pre_hook(begin)
    try:
        yield
    finally:
        hook.remove()
        _NAMED.reset(token)


class Reader(TorchFunctionMode):
    """Notes the weights that functions are called with.

    Attributes:
        names: Theirs; a weight that is part of several modules has several.
    """

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self._named = _NAMED.get() or {}

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        """Note the weights, and make the call."""
        for leaf in pytree.tree_leaves((args, kwargs)):
            self.names |= {_ANY} if isinstance(leaf, _HOLDERS) else self._named.get(id(leaf), set())
        return func(*args, **(kwargs or {}))


def owners(module: torch.nn.Module, names: Collection[str]) -> torch.nn.Module:
    """A module with those parts of another that own some weights, at the same names."""
    found = torch.nn.Module()
    for name in sorted({name.rpartition(".")[0] for name in names}, key=len):
        if not name:
            return module
        _put(found, name.split("."), module)
    return found


def _put(found: torch.nn.Module, path: list[str], module: torch.nn.Module) -> None:
    """Add a part of a module to another one, unless a part around it is there."""
    for at, name in enumerate(path, 1):
        module = module.get_submodule(name)
        if found._modules.get(name) is module:  # noqa: SLF001 - a part may be called as a method is
            return
        if at == len(path):
            found.add_module(name, module)
        elif name not in found._modules:  # noqa: SLF001
            found.add_module(name, torch.nn.Module())
            found.get_submodule(name).training = False
        found = found.get_submodule(name)
