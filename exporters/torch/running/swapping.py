"""Modules that are changed for the length of a capture, and then are as they were."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import torch

_TABLES = ("_parameters", "_buffers", "_modules", "_forward_pre_hooks")


@contextlib.contextmanager
def put_back(parts: Iterable[torch.nn.Module]) -> Iterator[None]:
    """Afterwards, classes, attributes, parameters, buffers, parts and hooks of modules are those from before."""
    before = [(part, type(part), _tables(part)) for part in parts]
    try:
        yield
    finally:
        for part, kind, tables in before:
            if type(part) is not kind:
                part.__class__ = kind
            for now, then in tables:
                if now.keys() != then.keys() or any(now[key] is not then[key] for key in then):
                    now.clear()
                    now.update(then)


def _tables(part: torch.nn.Module) -> list[tuple[Any, dict[str, Any]]]:
    tables = [vars(part)[name] for name in _TABLES]
    return [*((table, dict(table)) for table in tables), (part.__dict__, dict(vars(part)))]
