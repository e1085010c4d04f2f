"""Callers of short runs take turns.

Most kernels let go of the interpreter's lock. Where they take microseconds, threads that run at once snatch it from
each other between any two of them, on another processor each time: two threads then get less done than one. Runs of
large kernels gain from each other's company, and are left alone.

To hand the turn over after each run would be as bad: it takes two threads that wake up. A thread that comes back at
once therefore keeps it for a while, and the others sleep. Turns save time and protect nothing: where a thread is
interrupted at a bad moment, or ends, the next one takes what it left behind.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

SHORT = 60e-6
"""Seconds of a node, on average, below which runs take turns."""

AT_ONCE = 100e-6
"""Seconds between two runs of a thread that does little else."""

WHILE = 5e-3
"""Seconds for which such a thread keeps the turn when others wait: as long as Python lets a thread run."""

_LOOK = 5e-3
"""Seconds after which the first of those who wait looks whether the owner still comes back."""

_LOST = 1.0
"""Seconds of one run after which nobody waits for its end."""

_FIRST = 4
_EVERY = 64
"""Runs that are timed: the first ones, which includes those that warm up, and one of so many afterwards."""


class _Thread:
    """Lives as long as a thread does."""


class _Mine(threading.local):
    """What a thread knows of itself."""

    inside = False
    left = float("-inf")

    def __init__(self) -> None:
        self.thread = _Thread()
        weakref.finalize(self.thread, _end_of_thread).atexit = False


class Turn:
    """Whose turn it is."""

    def __init__(self) -> None:
        self._state = threading.Lock()  # for what follows, and never for long
        self._owner = 0
        self._busy = self._keeps = self._awaited = False
        self._since = self._seen = 0.0
        self._line = threading.Lock()  # held by the first of those who wait
        self._bell = threading.Lock()  # which that one sleeps on
        self._bell.acquire()

    def run(self, function: Callable[..., Any], values: Sequence[Any]) -> Any:
        """Call the function when it is this thread's turn; a run may start another."""
        if _mine.inside:
            return function(*values)
        eager = time.perf_counter() - _mine.left < AT_ONCE
        if not self._take(eager):
            with self._line:
                self._wait(eager)
        try:
            _mine.inside = True
            return function(*values)
        finally:
            _mine.inside = False
            now = _mine.left = time.perf_counter()
            self.leave(now)

    def _wait(self, eager: bool) -> None:
        self._awaited = True
        while not self._take(eager):
            self._bell.acquire(timeout=_LOOK)
        self._awaited = False

    def _take(self, eager: bool) -> bool:
        me, now = threading.get_ident(), time.perf_counter()
        with self._state:
            if self._owner != me:
                if self._owner and now - self._seen < (_LOST if self._busy else AT_ONCE):
                    return False
                self._owner, self._since = me, now
            self._busy, self._keeps, self._seen = True, eager, now
            return True

    def leave(self, now: float, *, for_good: bool = False) -> None:
        """The end of a run, or of the thread, if it is its turn."""
        with self._state:
            if self._owner != threading.get_ident():
                return
            self._busy, self._seen = False, now
            if for_good or (self._awaited and not (self._keeps and now - self._since < WHILE)):
                self._owner = 0
                if self._bell.locked():
                    self._bell.release()


_turn = Turn()


def _end_of_thread() -> None:
    _turn.leave(time.perf_counter(), for_good=True)


_mine = _Mine()


def in_turn(function: Callable[..., Any], nodes: int) -> Callable[..., Any]:
    """The function, one call at a time in this process while its calls are short for as many nodes as it runs."""
    limit = SHORT * nodes
    short, count = False, 0

    def run(*values: Any) -> Any:
        nonlocal count
        count += 1
        call = function if count > _FIRST and count % _EVERY else timed
        return _turn.run(call, values) if short else call(*values)

    def timed(*values: Any) -> Any:
        nonlocal short
        start = time.thread_time()  # not what passes while others hold the lock
        results = function(*values)
        short = time.thread_time() - start < limit
        return results

    return run


def _after_fork() -> None:
    global _turn  # noqa: PLW0603 - the thread whose turn it was is gone
    _turn = Turn()
    _mine.inside = False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
