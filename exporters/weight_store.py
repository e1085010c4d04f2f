"""The weights of an export, each once however many graphs read it: in memory, or in a file."""

from __future__ import annotations

import mmap
import tempfile
import weakref
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np

from entrepot.ir.errors import StorageError

Array: TypeAlias = np.ndarray[Any, Any]

_SAMPLED = 64
"""How many elements tell apart nearly all arrays of a shape."""
_LEAST_IN_FILE = 1 << 20
"""Bytes of the smallest array that goes into the file: each is mapped by itself."""


class WeightStore:
    """Arrays that nobody writes to; those of the same bytes are one, as long as somebody has it.

    Args:
        folder: Where large arrays lie in a file without a name, so that they take no memory of which the system cannot
            have back what it needs; the file is gone with the last of them. ``None`` for memory.

    Raises:
        StorageError: No file can be made in the folder.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._file: IO[bytes] | None = None
        self._known: dict[Any, list[weakref.ref[Array]]] = {}

    def kept(self, array: Array) -> Array:
        """The array as it is now, which it stays whatever becomes of the one that is given.

        One that owns its memory is taken over: its owner does not write to it any more.

        Raises:
            StorageError: There is no room for it in the folder.
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
        if self._folder is not None and array.nbytes >= _LEAST_IN_FILE:
            return self._in_file(array, self._folder)
        return array if array.flags.owndata and array.flags.c_contiguous else array.copy()

    def _in_file(self, array: Array, folder: Path) -> Array:
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - what is mapped outlives it
                weakref.finalize(self, self._file.close)
            start = self._file.tell()
            self._file.write(_bytes(array).data)
            self._file.write(bytes(-array.nbytes % mmap.ALLOCATIONGRANULARITY))
            self._file.flush()
            mapped = mmap.mmap(self._file.fileno(), array.nbytes, offset=start, access=mmap.ACCESS_READ)
        except OSError as error:
            why = error.strerror or str(error)
            raise StorageError(f"weights cannot be written there: {why}", path=folder, errno=error.errno) from error
        return np.frombuffer(mapped, array.dtype).reshape(array.shape)


def _bytes(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
