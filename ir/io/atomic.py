"""Files that appear whole or not at all, even when the process is killed in between."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_HERE, _EXCHANGE = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
_DAY = 86_400
_NOTE = 4096


class Staging:
    """New files for one model, written under hidden names in its folder until they are moved into place.

    Args:
        path: The model file; its folder must exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._left: list[Path] = []

    def write(self, write: Callable[[BinaryIO], object]) -> Path:
        """A new file on disk, synchronised, with the permissions of the model file if there is one."""
        temporary = self.fresh_name()
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
        self._left.append(temporary)
        with open(os.open(temporary, flags, 0o666), "wb") as file:
            with contextlib.suppress(OSError):  # no file to copy them from, or a file system without permissions
                os.chmod(temporary, self.path.stat().st_mode & 0o777)
            write(file)
            file.flush()
            os.fsync(file.fileno())
        return temporary

    def fresh_name(self) -> Path:
        """A hidden name that only ``clear`` and the next save of this model know."""
        return self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}.tmp")

    def clear(self) -> None:
        """Remove what was not moved into place."""
        for temporary in self._left:
            temporary.unlink(missing_ok=True)

    def clear_killed(self, *, locked: bool) -> None:
        """Remove what earlier saves of this model left when they were killed.

        Args:
            locked: No other save is at work in the folder; otherwise only files older than a day are removed.
        """
        for left in self._killed():
            with contextlib.suppress(OSError):
                if locked or time.time() - left.stat().st_mtime > _DAY:
                    left.unlink()

    def killed_notes(self, start: bytes) -> list[bytes]:
        """The contents, without ``start``, of short files that killed saves left and that begin with it."""
        notes = []
        for left in self._killed():
            with contextlib.suppress(OSError), open(left, "rb") as file:
                content = file.read(_NOTE + 1)
                if content.startswith(start) and len(content) <= _NOTE:
                    notes.append(content.removeprefix(start))
        return notes

    def _killed(self) -> list[Path]:
        pattern = re.compile(re.escape(f".{self.path.name}.") + r"[0-9a-f]{8}\.tmp")
        names = [name for name in os.listdir(self.path.parent) if pattern.fullmatch(name)]
        paths = [path for path in map(self.path.with_name, names) if path not in self._left]
        return [path for path in paths if stat.S_ISREG(path.lstat().st_mode)]


@contextlib.contextmanager
def folder_lock(folder: Path) -> Iterator[bool]:
    """One save at a time in a folder; yields ``False`` where the system has no such locks.

    The lock is on the folder itself: it leaves no file behind, and ends with the process.
    """
    if fcntl is None:
        yield False
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            locked = True
        except OSError:  # some network file systems
            locked = False
        yield locked
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make renames in a folder survive a power cut."""
    if fcntl is None:
        return  # Windows cannot open folders
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some network file systems
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def exchanged(one: Path, other: Path) -> bool:
    """Let two files or folders swap their names in one step; ``False`` where the system cannot do that."""
    swap = getattr(_library(), "renameat2", None)
    if swap is None:
        return False
    swap.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    return bool(swap(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0)


def _library() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(None)
    except (OSError, TypeError):  # Windows
        return None


def mentions(path: Path, text: str) -> bool:
    """Whether a file contains a piece of text; for one that cannot be read, assume so."""
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(text.encode()) >= 0
    except ValueError:  # an empty file cannot be mapped
        return False
    except FileNotFoundError:
        return False
    except OSError:
        return True
