"""Run a builder: weights are drawn by NumPy, from seeds of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from entrepot.models_zoo.registry import Built


def make(builder: Callable[..., Built], parameters: dict[str, Any]) -> Built:
    """Call ``builder``."""
    return builder(**parameters)
