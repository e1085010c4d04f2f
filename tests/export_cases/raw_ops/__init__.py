"""Operators of ``tf.raw_ops``: every family that is numeric and has a kernel on CPU, a file each."""

from __future__ import annotations

import importlib
import pkgutil

from tests.export_cases.raw_ops.case import CASES, RawCase


def catalogue() -> list[RawCase]:
    """All cases, in the same order at every time."""
    for module in pkgutil.iter_modules(__path__, f"{__name__}."):
        importlib.import_module(module.name)
    return list(CASES)
