"""Which functions of torch write into what they are given."""

from __future__ import annotations

from typing import Any

_READING = {"__int__", "__index__", "__iter__", "__invert__"}


def changes(name: str, kwargs: dict[str, Any]) -> bool:
    """Whether a function writes into an argument: ``add_``, ``__iadd__``, ``__setitem__``, or ``out=``."""
    if name.startswith("__"):
        return name == "__setitem__" or (name.startswith("__i") and name not in _READING)
    changes_values = name.endswith("_") and name not in ("detach_", "requires_grad_")
    return changes_values or kwargs.get("out") is not None
