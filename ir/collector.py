"""Python's cycle collector, held off while a graph is built, copied or written."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def collector_paused() -> Iterator[None]:
    """A graph is many objects and no garbage: looking for some, again and again, doubles the time or worse.

    What was made inside counts as old afterwards, so that the first look is not at all of it either.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if not gc.get_freeze_count():  # else somebody keeps objects out of sight, and unfreezing would show them
                gc.freeze()
                gc.unfreeze()
            gc.enable()
