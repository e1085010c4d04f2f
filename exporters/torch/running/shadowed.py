"""Submodules under names that every module has for something else, which torch.export (2.13) asks for by name."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch


@contextlib.contextmanager
def shadowed_left_out(module: torch.nn.Module) -> Iterator[None]:
    """Inside, no part of a module has a submodule like ``self.parameters = nn.ParameterList(...)``.

    Python finds the method of the class instead, so that ``forward`` cannot mean it.
    """
    held = [(part, part._modules.copy()) for part in module.modules() if _shadowed(part)]  # noqa: SLF001
    for part, _ in held:
        for name in _shadowed(part):
            del part._modules[name]  # noqa: SLF001
    try:
        yield
    finally:
        for part, children in held:
            part._modules.clear()  # noqa: SLF001 - so that the order stays
            part._modules.update(children)  # noqa: SLF001


def _shadowed(part: torch.nn.Module) -> list[str]:
    children: Any = part._modules  # noqa: SLF001 - those of a ScriptModule are no dict
    return [name for name in children if hasattr(torch.nn.Module, name)] if isinstance(children, dict) else []
