"""The host's memory as frameworks take it: large results come from the heap and go back to it, not to the system.

The C library asks the system for every array of more than 32 MiB and gives it back at once; the next one is then filled
page by page again, which takes longer than most kernels. ``trim`` returns what is not in use.

Weights that every run reads from end to end lie in large pages: with those of 4 KiB the processor waits for addresses
as well as for data, which costs a decoder of one token more than a tenth of its time.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""``M_TRIM_THRESHOLD`` and ``M_MMAP_THRESHOLD`` of glibc's ``mallopt``."""

_LARGEST = 256 << 20

_USUAL = 32 << 20
"""The most that the C library keeps as an array by itself, once an array as large has come and gone."""

_KEEPERS: list[None] = []
"""Who keeps memory for a while."""

_HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage")
"""What Linux says about them: whether they may be used, and their size."""

_COLLAPSE = 25
"""``MADV_COLLAPSE`` of Linux 6.1, which puts memory into large pages at once; older ones refuse it."""


@cache
def _library() -> Any:
    try:
        library = ctypes.CDLL(None)
    except (OSError, TypeError):  # Windows
        return None
    return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None


@cache
def keep() -> bool:
    """Let the process keep up to 256 MiB for the next results; whether the C library can."""
    return _limit(_LARGEST, _LARGEST)


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Inside, memory is kept as by ``keep``; afterwards it is returned, unless somebody has called that."""
    if _KEEPERS or keep.cache_info().currsize:
        yield
        return
    _KEEPERS.append(None)
    _limit(_LARGEST, _LARGEST)
    try:
        yield
    finally:
        _KEEPERS.pop()
        if not keep.cache_info().currsize:
            _limit(_USUAL, 2 * _USUAL)
            trim()


def _limit(largest: int, free: int) -> bool:
    """Take arrays up to some size from the heap, and return what is free of it where that is more; whether it can."""
    library = _library()
    if library is None:
        return False
    return bool(library.mallopt(_MMAP_THRESHOLD, largest) and library.mallopt(_TRIM_THRESHOLD, free))


def gather(address: int, size: int) -> bool:
    """Put memory into large pages, with what shares the first and the last of them; whether the system did.

    Args:
        address: Where it begins.
        size: In bytes.
    """
    library, page = _library(), _large_page()
    if library is None or not page or size < page:
        return False
    start = address // page * page
    madvise = library.madvise
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return bool(madvise(start, -(-(address + size - start) // page) * page, _COLLAPSE) == 0)


@cache
def _large_page(told: Path = _HUGE_PAGES) -> int:
    """Bytes of a large page; 0 where the system has none, or its owner does not want them."""
    try:
        if "[never]" in (told / "enabled").read_text("ascii"):
            return 0
        return int((told / "hpage_pmd_size").read_text("ascii"))
    except (OSError, ValueError):
        return 0


def trim() -> bool:
    """Return what is free to the system; whether anything was."""
    library = _library()
    return bool(library is not None and library.malloc_trim(0))
