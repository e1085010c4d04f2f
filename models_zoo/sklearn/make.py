"""Run a builder reproducibly."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from entrepot.models_zoo.registry import Built


def make(builder: Callable[..., Built], parameters: dict[str, Any]) -> Built:
    """Call ``builder``, which seeds whatever it draws by itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of too few iterations, which small models are given
        return builder(**parameters)
