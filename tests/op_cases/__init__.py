"""The one table of operator cases: every kernel, importer and adapter runs it.

A family module has a list ``CASES``; see ``case.py`` for how a case is written. Each operator carries: default
attributes, every non-default attribute once, size 0, rank 0 where legal, NaN and infinities, each class of dtype.
"""

from __future__ import annotations

import importlib
import pkgutil

from tests.op_cases.case import Case

ML = "ai.onnx.ml"
MAPS = ("CastMap", "DictVectorizer")
"""Operators that take dictionaries, which no provider of ours is fed with."""


def all_cases() -> list[Case]:
    """The cases of every operator in force at the hub but those of ai.onnx.ml: what every kernel must pass."""
    return [case for case in _every_case() if case.domain != ML and not case.is_retired]


def ml_cases() -> list[Case]:
    """The cases of ai.onnx.ml that the cpu provider runs: those fed with tensors, older forms of trees among them."""
    return [case for case in _every_case() if case.domain == ML and case.op_type not in MAPS]


def other_cases() -> list[Case]:
    """The cases of ai.onnx.ml, and of operators that were deprecated before the hub: what adapters must pass, too."""
    return [case for case in _every_case() if case.domain == ML or case.is_retired]


def _every_case() -> list[Case]:
    modules = [importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    return [case for module in modules for case in getattr(module, "CASES", [])]
