"""Whose code something is: a user's, or some library's."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

_LIBRARIES = ("-packages", "/lib/python")
_NOBODYS = frozenset({*sys.stdlib_module_names, "entrepot"} - {"__main__"})


def is_of_user(around: Mapping[str, Any]) -> bool:
    """Whether the globals are those of a user's module."""
    file, name = (str(around.get(each) or "") for each in ("__file__", "__name__"))
    return not any(part in file for part in _LIBRARIES) and name.partition(".")[0] not in _NOBODYS


def is_class_of_user(cls: type) -> bool:
    """Whether a class is defined in such a module, which need not be among those that were imported."""
    module = sys.modules.get(cls.__module__)
    return is_of_user({"__name__": cls.__module__} if module is None else vars(module))


def is_module_of(cls: type, *packages: str) -> bool:
    """Whether a class is one of modules of some packages."""
    bases = [f"{base.__module__}." for base in cls.__mro__ if base.__name__ == "Module"]
    return any(home.startswith(f"{package}.") for home in bases for package in packages)
