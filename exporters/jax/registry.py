"""Functions that are found by names, in the modules of a package, which are imported when one is asked for."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any, TypeAlias

Function: TypeAlias = Callable[..., Any]


class Registry:
    """Functions by names.

    Args:
        package: Whose modules register them.
    """

    def __init__(self, package: str) -> None:
        self._package = package
        self._functions: dict[str, Function] = {}
        self._complete = False

    def register(self, *names: str) -> Callable[[Function], Function]:
        """A decorator for the function of these names."""

        def enter(function: Function) -> Function:
            for name in names:
                assert name not in self._functions, name
                self._functions[name] = function
            return function

        return enter

    def functions(self) -> dict[str, Function]:
        """Those of every module."""
        if not self._complete:
            package = importlib.import_module(self._package)
            for module in pkgutil.iter_modules(package.__path__, f"{self._package}."):
                importlib.import_module(module.name)
            self._complete = True
        return self._functions
