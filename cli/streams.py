"""The standard streams: closed ones are opened again, and a verb may claim standard output for data."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import BinaryIO

NAMES = ("stdin", "stdout", "stderr")


def reopen_closed() -> frozenset[str]:
    """Connect standard streams that are closed (``>&-``) to the null device; returns their names.

    Python has ``None`` for them. Worse, the next file that is opened would get the number of the closed stream, and
    what a library prints would end up in it.
    """
    closed = frozenset(name for name in NAMES if getattr(sys, name) is None)
    for number, name in enumerate(NAMES):
        if name in closed:
            # the lowest free number is given out, and those below this one are taken
            setattr(sys, name, open(os.devnull, "w" if number else "r", encoding="utf-8"))  # noqa: SIM115 - stays open
    return closed


def flush() -> bool:
    """Send what is still held back; whether somebody took it."""
    try:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except (OSError, ValueError):  # ValueError: closed by the code of a user
        return False
    return True


def give_up() -> None:
    """Let the interpreter flush into nothing at its end, which would fail once more."""
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with contextlib.suppress(OSError, ValueError):  # it may be no file of the system
                os.dup2(null, stream.fileno())
        except ValueError:  # closed by the code of a user: nothing is held back
            continue
    os.close(null)


class StandardOutput:
    """Standard output as the place of binary data: from now on everything that is printed goes to standard error."""

    def __init__(self) -> None:
        sys.stdout.flush()
        self._file: BinaryIO = sys.stdout.buffer
        sys.stdout = sys.stderr

    def write(self, data: bytes) -> int:
        """Write some of it."""
        return self._file.write(data)

    def flush(self) -> None:
        """Send what is held back."""
        self._file.flush()

    def __str__(self) -> str:
        return "standard output"
