"""All cases of JAX."""

from __future__ import annotations

import importlib
import pkgutil

from tests.export_cases import jax
from tests.export_cases.case import Case
from tests.export_cases.jax.making import FOUND


def catalogue() -> list[Case]:
    """Every case of every file beside this one; nothing is built yet."""
    for module in pkgutil.iter_modules(jax.__path__, f"{jax.__name__}."):
        importlib.import_module(module.name)
    return list(FOUND)
