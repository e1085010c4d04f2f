"""The host's memory as torch takes it: large results come from the heap and go back to it, not to the system.

The C library asks the system for every array of more than 32 MiB and gives it back at once; the next one is then filled
page by page again, which takes longer than most kernels. ``trim`` returns what is not in use.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""``M_TRIM_THRESHOLD`` and ``M_MMAP_THRESHOLD`` of glibc's ``mallopt``."""

_LARGEST = 256 << 20


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
    library = _library()
    if library is None:
        return False
    return bool(library.mallopt(_MMAP_THRESHOLD, _LARGEST) and library.mallopt(_TRIM_THRESHOLD, _LARGEST))


def trim() -> bool:
    """Return what is free to the system; whether anything was."""
    library = _library()
    return bool(library is not None and library.malloc_trim(0))
