"""The weights of an export, each once however many graphs read it: in memory, or in a file."""

from __future__ import annotations

import contextlib
import errno
import mmap
import shutil
import tempfile
import weakref
from io import FileIO
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]

_SAMPLED = 64
"""How many elements tell apart nearly all arrays of a shape."""
_LEAST_IN_FILE = 1 << 20
"""Bytes of the smallest array that goes into the file, where each begins a page."""
_STRETCH = 1 << 28
"""Bytes of the file that are mapped at once: each mapping has a file descriptor of its own."""
_MOST_IN_MEMORY = 1 << 27
"""Bytes for which no file is worth its writing, whatever folder there is."""


class WeightStore:
    """Arrays that nobody writes to; those of the same bytes are one, as long as somebody has it.

    Args:
        folder: Where the arrays of a large model lie in a file without a name, which the system can drop from memory;
            the file is gone with the last of them. ``None`` for memory, where everything lies that the folder has no
            room for, or that cannot be mapped there.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._file: FileIO | None = None
        self._mapped = memoryview(b"")
        self._first, self._end, self._in_memory = 0, 0, 0
        self._known: dict[Any, list[weakref.ref[Array]]] = {}

    def kept(self, array: Array) -> Array:
        """The array as it is now, which it stays whatever becomes of the one that is given.

        One that owns its memory is taken over: its owner does not write to it any more.
        """
        places = np.linspace(0, max(array.size - 1, 0), _SAMPLED).astype(np.int64)[: array.size]
        alike = self._known.setdefault((array.dtype, array.shape, array.flat[places].tobytes()), [])
        for known in [found for each in alike if (found := each()) is not None]:
            if np.array_equal(_bytes(known), _bytes(array)):
                return known
        kept = self._stored(array)
        alike[:] = [each for each in alike if each() is not None] + [weakref.ref(kept)]
        return kept

    def _stored(self, array: Array) -> Array:
        large = array.nbytes >= _LEAST_IN_FILE and self._in_memory + array.nbytes > _MOST_IN_MEMORY
        if self._folder is not None and large:
            with contextlib.suppress(OSError):
                return self._in_file(array, self._folder)
            self._folder = None
        self._in_memory += array.nbytes
        return array if array.flags.owndata and array.flags.c_contiguous else array.copy()

    def _in_file(self, array: Array, folder: Path) -> Array:
        """The array in the file.

        Raises:
            OSError: The folder has no room for it, and for as much again: what lies there is still to be saved.
        """
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - what is mapped outlives it
            weakref.finalize(self, self._file.close)
        if shutil.disk_usage(folder).free < self._end + 2 * array.nbytes:
            raise OSError(errno.ENOSPC, "no room for the weights twice")
        try:
            content = self._written(self._file, array)
        except OSError:
            self._file.truncate(self._end)
            raise
        return np.frombuffer(content, array.dtype).reshape(array.shape)

    def _written(self, file: FileIO, array: Array) -> memoryview:
        """The bytes of an array, mapped, after they were written where the last one ends."""
        if self._end + array.nbytes > self._first + len(self._mapped):
            size = max(_STRETCH, array.nbytes)
            file.truncate(self._end + size)
            self._mapped = memoryview(mmap.mmap(file.fileno(), size, offset=self._end, access=mmap.ACCESS_READ))
            self._first = self._end
        file.seek(self._end)
        left = _bytes(array).data
        while left:  # the system takes 2 GiB at once
            left = left[file.write(left) :]
        start = self._end - self._first
        self._end += array.nbytes + -array.nbytes % mmap.ALLOCATIONGRANULARITY
        return self._mapped[start : start + array.nbytes]


def _bytes(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
