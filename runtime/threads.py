"""Work spread over our own threads, with BLAS kept to one.

BLAS libraries spread every product over all processors, however small it is and whoever else is at work; their threads
spin while they wait. Here a kernel decides what is worth spreading, into parts that do not depend on how many threads
there are: results are the same, bit for bit, on one thread and on many.
"""

from __future__ import annotations

import contextvars
import ctypes
import math
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from entrepot.runtime.blas import libraries

T = TypeVar("T")

WORTH = 25_000_000
"""Multiplications and additions that make it worthwhile to wake another thread: a third of a millisecond."""

_COUNT: contextvars.ContextVar[int] = contextvars.ContextVar("threads of the session that runs", default=1)

QUIET = contextvars.Context()
"""Where kernels run: overflow and division by zero give infinities and NaNs, not warnings. ``numpy.errstate`` keeps its
state in a context variable; running in a copy of this context costs a tenth of entering it."""

QUIET.run(np.seterr, all="ignore")


def context(count: int) -> contextvars.Context:
    """Where the kernels of a session run that may use ``count`` threads."""
    made = QUIET.copy()
    made.run(_COUNT.set, count)
    return made


def available() -> int:
    """Processors that this process may use: by affinity, by its container's quota, and by ``OMP_NUM_THREADS``."""
    affinity = getattr(os, "sched_getaffinity", None)
    counts = [len(affinity(0)) if affinity is not None else os.cpu_count() or 1, _quota()]
    wished = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if wished.isdecimal():
        counts.append(int(wished) or 1)
    return max(1, min(counts))


@cache
def _quota() -> int:
    """Processors that the control group allows, rounded up; very many without one."""
    unlimited = 1 << 16
    places = (
        ("/sys/fs/cgroup/cpu.max",),
        ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/cpu.cfs_period_us"),
    )
    for files in places:
        try:
            quota, period = " ".join(Path(file).read_text("ascii") for file in files).split()[:2]
            return unlimited if quota in ("max", "-1") else max(1, math.ceil(int(quota) / int(period)))
        except (OSError, ValueError):
            continue
    return unlimited


class _OneBlasThread:
    """While anyone is inside, NumPy's BLAS uses the calling thread alone; the last one out restores what was set."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start over as if nobody were inside: after a fork, the threads that were inside are gone."""
        self._lock = threading.Lock()
        self._inside = 0
        self._before: list[int] = []

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._before = [get() for get, _ in _blas_switches()]
                self._set([1] * len(self._before))
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._set(self._before)

    def _set(self, counts: Sequence[int]) -> None:
        for count, before, (_, switch) in zip(counts, self._before, _blas_switches(), strict=True):
            if before != 1:
                switch(count)


_Switch = tuple[Callable[[], int], Callable[[int], object]]

_NAMES = {
    "openblas": [
        (f"{prefix}openblas_get_num_threads{suffix}", f"{prefix}openblas_set_num_threads{suffix}")
        for prefix in ("scipy_", "")
        for suffix in ("64_", "", "_64")
    ],
    "mkl": [("MKL_Get_Max_Threads", "MKL_Set_Num_Threads")],
    "blis": [("bli_thread_get_num_threads", "bli_thread_set_num_threads")],
}


@cache
def _blas_switches() -> tuple[_Switch, ...]:
    """How to get and set the threads of the BLAS that NumPy uses; nothing for one that cannot be controlled."""
    switches = (_switch(info["filepath"], _NAMES.get(info["internal_api"], [])) for info in libraries())
    return tuple(switch for switch in switches if switch is not None)


def _switch(path: str, names: Sequence[tuple[str, str]]) -> _Switch | None:
    library = ctypes.PyDLL(path)  # these calls return at once: releasing the interpreter would cost more
    for getter, setter in names:
        if hasattr(library, getter) and hasattr(library, setter):
            get, put = getattr(library, getter), getattr(library, setter)
            get.argtypes, get.restype = (), ctypes.c_int
            put.argtypes, put.restype = (ctypes.c_int,), None
            return get, put
    return None


one_blas_thread = _OneBlasThread()

_ALONE = context(1)
"""Where parts run; they are not split again."""


def each(function: Callable[[T], Any], items: Sequence[T], work: float) -> None:
    """``function(item)`` for every item, on the threads of the session that runs; returns when all are done.

    Args:
        function: Must not wait for anything that this is called for.
        items: Independent of each other; which thread does which, and in what order, is open.
        work: Multiplications and additions of all of them; few are done right here.
    """
    count = min(_COUNT.get(), len(items))
    if count == 1 or work < WORTH:
        for item in items:
            function(item)
        return
    waiting = deque(items)

    def take_turns() -> None:
        while True:
            try:
                item = waiting.popleft()
            except IndexError:
                return
            function(item)

    helpers = _started(take_turns, count - 1, _pool(_COUNT.get()))
    try:
        _ALONE.copy().run(take_turns)
    finally:
        waiting.clear()
        for helper in helpers:
            if not helper.cancel():  # a call that never got its turn has nothing left to do
                helper.result()


def _started(function: Callable[[], object], count: int, pool: ThreadPoolExecutor) -> list[Future[object]]:
    """``count`` calls on other threads; fewer where no more can be started, as when the interpreter shuts down."""
    started: list[Future[object]] = []
    try:
        for _ in range(count):
            started.append(pool.submit(_ALONE.copy().run, function))  # noqa: PERF401 - those before an error count
    except RuntimeError:
        pass
    return started


@cache
def _pool(count: int) -> ThreadPoolExecutor:
    """The threads beside the caller's own; sessions of one count share them."""
    return ThreadPoolExecutor(count - 1, thread_name_prefix="entrepot")


def _after_fork() -> None:
    one_blas_thread.forget()
    _pool.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
