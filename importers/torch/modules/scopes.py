"""Which part of the source model a step comes from, as its exporter noted it."""

from __future__ import annotations

import ast

from entrepot.runtime.planning.plan import Step

Path = tuple[str, ...]

_DEEPEST = 30
"""Names; a path with more of them is not one of modules."""


def scope_of(step: Step) -> Path:
    """The path of the module that a step belongs to; empty where nothing says."""
    if "entrepot.module" in step.metadata:
        return split(step.metadata["entrepot.module"])
    if "pkg.torch.onnx.name_scopes" in step.metadata:
        return _of_scopes(step.metadata["pkg.torch.onnx.name_scopes"])
    if any(key.startswith("entrepot.") for key in step.metadata) or "/" not in step.name:
        return ()
    return _of_node(step.name)


def split(path: str) -> Path:
    """A path of names between dots, as torch has them, or between slashes, as the other frameworks do."""
    parts = tuple(part for part in path.split("/" if "/" in path else ".") if part)
    return parts if len(parts) <= _DEEPEST else ()


def _of_scopes(text: str) -> Path:
    """torch.onnx keeps a list of dotted paths, the last of which is the node itself."""
    try:
        scopes = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return ()
    if not isinstance(scopes, list) or len(scopes) < 2 or not isinstance(scopes[-2], str):
        return ()
    return split(scopes[-2])


def _of_node(name: str) -> Path:
    """``/features/features.0/features.0.1/Conv`` is in ``features.0.1``: items of lists come with the lists' names."""
    path: list[str] = []
    for part in name.split("/")[:-1]:
        names = [each for each in part.split(".") if each]
        path += names[_said_before(path, names) :]
    return tuple(path) if len(path) <= _DEEPEST else ()


def _said_before(path: list[str], names: list[str]) -> int:
    """How many of the names, though not all, are those that the path ends with."""
    counts = range(min(len(path), len(names) - 1), 0, -1)
    return next((count for count in counts if path[-count:] == names[:count]), 0)


def shared(paths: list[Path]) -> Path:
    """What paths have in common at the beginning."""
    first = min(paths, default=())
    last = max(paths, default=())
    length = next((at for at, name in enumerate(first) if at >= len(last) or last[at] != name), len(first))
    return first[:length]
