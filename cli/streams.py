"""The standard streams: closed ones are reopened, and a verb may claim standard output for data."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import BinaryIO

NAMES = ("stdin", "stdout", "stderr")


def reopen_closed() -> frozenset[str]:
    """Connect standard streams that are closed (``>&-``) to the null device; returns their names.

    Python sets them to ``None``. Worse, the next file to be opened would get the number of the closed stream, and
    whatever a library prints would end up in it.
    """
    closed = frozenset(name for name in NAMES if getattr(sys, name) is None)
    for number, name in enumerate(NAMES):
        if name in closed:
            # the system gives out the lowest free number, and those below this one are taken
            setattr(sys, name, open(os.devnull, "w" if number else "r", encoding="utf-8"))  # noqa: SIM115 - stays open
    return closed


def flush() -> bool:
    """Send what is still buffered; returns whether it was accepted."""
    try:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except (OSError, ValueError):  # ValueError: closed by the user's code
        return False
    return True


def give_up() -> None:
    """Point the streams at the null device, so that the interpreter's last flush does not fail again."""
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with contextlib.suppress(OSError, ValueError):  # it may not be a file of the system
                os.dup2(null, stream.fileno())
        except ValueError:  # closed by the user's code: nothing is buffered
            continue
    os.close(null)


class StandardOutput:
    """Standard output for binary data: from now on everything that is printed goes to standard error."""

    def __init__(self) -> None:
        sys.stdout.flush()
        self._file: BinaryIO = sys.stdout.buffer
        sys.stdout = sys.stderr

    def write(self, data: bytes) -> int:
        """Write some of the data; returns how much."""
        return self._file.write(data)

    def flush(self) -> None:
        """Send what is buffered."""
        self._file.flush()

    def __str__(self) -> str:
        return "standard output"
