"""What a user's function is followed with, if one is: there, NumPy's functions answer for whatever rows may come."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

LIKE: ContextVar[Any] = ContextVar("like", default=None)
"""An array with as many rows as the argument has, ``None`` within formulas of our own."""
