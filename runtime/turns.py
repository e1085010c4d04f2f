"""Callers of short runs take turns.

Most kernels let go of the interpreter's lock. Where they take microseconds, threads that run at once snatch it from
each other between any two of them, on another processor each time: two threads then get less done than one. Runs of
large kernels gain from each other's company, and are left alone.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

SHORT = 60e-6
"""Seconds of a node, on average, below which runs take turns."""

_FIRST = 4
_EVERY = 64
"""Runs that are timed: the first ones, which includes those that warm up, and one of so many afterwards."""

_turn = threading.RLock()  # a run may start another


def in_turn(function: Callable[..., Any], nodes: int) -> Callable[..., Any]:
    """The function, one call at a time in this process while its calls are short for as many nodes as it runs."""
    limit = SHORT * nodes
    short, count = False, 0

    def run(*values: Any) -> Any:
        nonlocal count
        count += 1
        call = function if count > _FIRST and count % _EVERY else timed
        if not short:
            return call(*values)
        with _turn:
            return call(*values)

    def timed(*values: Any) -> Any:
        nonlocal short
        start = time.thread_time()  # not what passes while others hold the lock
        results = function(*values)
        short = time.thread_time() - start < limit
        return results

    return run


def _after_fork() -> None:
    global _turn  # noqa: PLW0603 - the thread that held it is gone
    _turn = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
