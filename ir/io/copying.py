"""Copying parts of weights files by the file system itself, or through little memory."""

from __future__ import annotations

import contextlib
import errno
import io
import mmap
import os
from pathlib import Path
from typing import BinaryIO

LARGE = 1 << 20
"""Bytes from which on it pays to ask the file system."""

_CHUNK = 1 << 26
_UNABLE = {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EBADF, errno.ETXTBSY}


def copy_part(path: Path, identity: tuple[int, int, int], content: memoryview, start: int, file: BinaryIO) -> None:
    """Append a part of a mapped file to another file.

    On file systems that share blocks nothing is copied at all; elsewhere the kernel copies without going through our
    memory. Where it cannot, mapped pages are written and let go, so that they do not pile up.

    Args:
        path: The file; if it is no longer there, the mapping still has its bytes.
        identity: Device, inode and size by which it is known again.
        content: The part, mapped.
        start: Where it begins in the file.
        file: Where it goes.
    """
    done = _by_file_system(path, identity, start, len(content), file) if len(content) >= LARGE else 0
    for at in range(done, len(content), _CHUNK):
        file.write(content[at : at + _CHUNK])
        if len(content) >= LARGE:
            _let_go(content, start + at, min(_CHUNK, len(content) - at))


def _by_file_system(path: Path, identity: tuple[int, int, int], start: int, size: int, file: BinaryIO) -> int:
    """How many bytes were copied."""
    target = _descriptor(file)
    if target is None or not hasattr(os, "copy_file_range"):
        return 0
    try:
        source = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return 0
    done, place = 0, file.tell()
    try:
        status = os.fstat(source)
        if (status.st_dev, status.st_ino, status.st_size) != identity:
            return 0
        while done < size:
            count = os.copy_file_range(source, target, min(_CHUNK, size - done), start + done, place + done)
            if not count:
                break
            done += count
    except OSError as error:
        if error.errno not in _UNABLE:
            raise
    finally:
        os.close(source)
    file.seek(place + done)
    return done


def _descriptor(file: BinaryIO) -> int | None:
    """That of a plain file, with everything written to it."""
    try:
        if not file.seekable():
            return None
        file.flush()
        return file.fileno()
    except (OSError, AttributeError, io.UnsupportedOperation):
        return None


def _let_go(content: memoryview, start: int, size: int) -> None:
    mapping = content.obj
    if isinstance(mapping, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
        last = (start + size) // mmap.PAGESIZE * mmap.PAGESIZE
        if last > first:
            with contextlib.suppress(OSError, ValueError):
                mapping.madvise(mmap.MADV_DONTNEED, first, last - first)
