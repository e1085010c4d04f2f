"""How long-running work reports what it is doing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TypeAlias

from entrepot.ir.arguments import expected

Progress: TypeAlias = "bool | Callable[[str], None] | None"
"""``None``: on a terminal, after a second. ``True``: always. ``False``: never. A callable is given each line."""


def reporter(progress: Progress) -> Callable[[str], None]:
    """The function that long-running work calls with one short line per stage.

    Raises:
        InputError: ``progress`` is of the wrong type.
    """
    if callable(progress):
        return progress
    if not (progress is None or isinstance(progress, bool)):
        raise expected("progress", "True, False, None or a function that is given each line", progress)
    if progress is False or (progress is None and not _is_watched()):
        return _silent
    return _DelayedLines(delay=0.0 if progress else 1.0)


def _is_watched() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()  # None: closed when the process began


def _silent(_text: str) -> None:
    pass


class _DelayedLines:
    """Prints to standard error, unless the work ends within ``delay`` seconds."""

    def __init__(self, delay: float) -> None:
        self._start = time.monotonic()
        self._delay = delay

    def __call__(self, text: str) -> None:
        elapsed = time.monotonic() - self._start
        if elapsed >= self._delay:
            print(f"[{elapsed:6.1f} s] {text}", file=sys.stderr, flush=True)  # noqa: T201 - progress is printed
