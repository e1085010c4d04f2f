"""Triangular systems that modules solve, in a capture as well: our graphs have a counterpart of the solver.

For exporters that have none, transformers (5.23) spells the solution out where it is exported, which takes hundreds
of operators for a layer, and a minute to capture.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import torch

_EXPORTING = "is_torchdynamo_exporting"


@contextlib.contextmanager
def solved_systems(module: torch.nn.Module) -> Iterator[None]:
    """Inside, parts of a module solve triangular systems in an export as they do without one."""
    modules = [sys.modules.get(name) for name in {type(part).__module__ for part in module.modules()}]
    spelt_out = [vars(each) for each in modules if each is not None and _spells_out_systems(vars(each))]
    before = [names[_EXPORTING] for names in spelt_out]
    for names in spelt_out:
        names[_EXPORTING] = lambda: False
    try:
        yield
    finally:
        for names, function in zip(spelt_out, before, strict=True):
            names[_EXPORTING] = function


def _spells_out_systems(names: Mapping[str, Any]) -> bool:
    """Whether a function solves a triangular system only where nothing is exported."""
    if _EXPORTING not in names:
        return False
    functions = (inspect.unwrap(each) for each in names.values() if inspect.isfunction(each))
    return any({_EXPORTING, "solve_triangular"} <= {*each.__code__.co_names} for each in functions)
