"""Python's cycle collector, paused or spared while a graph is built, copied or written."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

_SELDOM = 50
"""Collections of younger objects from one of all to the next, some 350,000 objects that are made and stay."""

_SPARED: list[None] = []
"""Whether objects are frozen by us: to count them, as Python does when it is asked, takes a hundredth of a second."""


@contextlib.contextmanager
def collector_paused() -> Iterator[None]:
    """A graph is many objects and no garbage; searching it for garbage again and again doubles the time or worse.

    Afterwards, objects made inside count as old, so that the first collection does not search all of them either.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if not (_SPARED or gc.get_freeze_count()):  # else unfreezing would undo somebody's own freeze
                gc.freeze()
                gc.unfreeze()
            gc.enable()


@contextlib.contextmanager
def collector_sparing() -> Iterator[None]:
    """Inside, the collector does not look at what was there before, afterwards it does again.

    Frameworks consist of some 100,000 objects, all of which it would go through each time that a graph has grown by a
    quarter: up to a third of the time in which one is written. What is made inside is gone through seldom. Whoever has
    frozen objects already is left alone.
    """
    if _SPARED or gc.get_freeze_count():
        yield
        return
    thresholds = gc.get_threshold()
    gc.freeze()
    _SPARED.append(None)
    gc.set_threshold(*thresholds[:2], max(thresholds[2], _SELDOM))
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        _SPARED.pop()
        gc.unfreeze()
