"""How long-running work reports what it is doing."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeAlias

from entrepot.ir.arguments import expected

Progress: TypeAlias = "bool | Callable[[str], None] | None"
"""``None``: on a terminal, after a second. ``True``: always. ``False``: never. A callable is given each line."""

DELAY = 1.0
"""Seconds after which work on a terminal says what it is doing."""


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
    return _DelayedLines(delay=0.0 if progress else DELAY)


@contextlib.contextmanager
def announcing(tell: object) -> Iterator[None]:
    """Inside, a reporter names a long stage while it lasts: the one under way when the first second is over.

    Args:
        tell: What ``reporter`` returned.
    """
    with tell.announcing() if isinstance(tell, _DelayedLines) else contextlib.nullcontext():
        yield


def _is_watched() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()  # None: closed when the process began


def _silent(_text: str) -> None:
    pass


class _DelayedLines:
    """Prints to standard error, unless the work ends within ``delay`` seconds."""

    def __init__(self, delay: float) -> None:
        self._start = time.monotonic()
        self._delay = delay
        self._stream = sys.stderr  # while torch works, the name stands for a place that nobody sees
        self._held = ""
        self._lock = threading.Lock()

    def __call__(self, text: str) -> None:
        with self._lock:
            if time.monotonic() - self._start >= self._delay:
                self._held = ""
                self._print(text)
            else:
                self._held = text

    @contextlib.contextmanager
    def announcing(self) -> Iterator[None]:
        """Inside, the last line of the delay is printed when the delay is over."""
        timer = threading.Timer(self._delay, self._release)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            with self._lock:
                self._held = ""

    def _release(self) -> None:
        with self._lock:
            text, self._held = self._held, ""
            if text:
                self._print(text)

    def _print(self, text: str) -> None:
        elapsed = time.monotonic() - self._start
        print(f"[{elapsed:6.1f} s] {text}", file=self._stream, flush=True)
