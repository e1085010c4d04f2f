"""The one table of operator cases: every kernel, importer and adapter runs it.

A family module has a list ``CASES``; see ``case.py`` for how a case is written. Each operator carries: default
attributes, every non-default attribute once, size 0, rank 0 where legal, NaN and infinities, each class of dtype.
"""

from __future__ import annotations

import importlib
import pkgutil

from tests.op_cases.case import Case


def all_cases() -> list[Case]:
    """The cases of every family module, in the order of the modules' names."""
    modules = [importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    return [case for module in modules for case in getattr(module, "CASES", [])]
