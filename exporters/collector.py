"""Python's garbage collector, while graphs are made."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def sparing() -> Iterator[None]:
    """Inside, the collector does not look at what was there before, afterwards it does again.

    Frameworks consist of some 100,000 objects, all of which it would go through each time that a graph has grown by a
    quarter: up to a third of the time in which one is written. Whoever has frozen objects already is left alone.
    """
    if gc.get_freeze_count():
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
