"""Sizes that are numbers by the end of a capture: torch.export (2.13) leaves symbols for them in what it noted before.

Translations ask whether a size is a number, and write less if it is.
"""

from __future__ import annotations

from typing import Any

import torch

from entrepot.exporters.torch.rewriting.environment import expression
from entrepot.exporters.torch.upstream import FakeTensor, pytree


def settle_sizes(program: torch.export.ExportedProgram) -> None:
    """Let the values that a program notes, in place, have numbers for such sizes."""
    for node in program.graph.nodes:
        if "val" in node.meta:
            node.meta["val"] = pytree.tree_map_only(FakeTensor, _settled, node.meta["val"])


def _settled(value: Any) -> Any:
    shape = [_number(size) for size in value.shape]
    if all(type(new) is type(old) for new, old in zip(shape, value.shape, strict=True)):
        return value
    with value.fake_mode:
        strides = [_number(stride) for stride in value.stride()]
        return torch.empty_strided(shape, strides, dtype=value.dtype, device=value.device)


def _number(size: Any) -> Any:
    if isinstance(size, int):
        return size
    known = expression(size)
    return int(known) if known.is_Integer else size
