"""Functions as in TensorFlow's own tests: mathematics, control flow, lists, variables, calls, images, strings."""

from __future__ import annotations

import importlib
import pkgutil

from tests.export_cases.tensorflow.case import CASES, FunctionCase


def catalogue() -> list[FunctionCase]:
    """All cases, in the same order at every time."""
    for module in pkgutil.iter_modules(__path__, f"{__name__}."):
        importlib.import_module(module.name)
    return list(CASES)
