"""Arrays in ``.npy`` and ``.npz`` files, without ever unpickling: that would run code."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from entrepot.ir.errors import InputError, MissingFileError, StorageError

_NPY, _ZIP = b"\x93NUMPY", (b"PK\x03\x04", b"PK\x05\x06")


def read_array(path: str, key: str, wanted: str) -> np.ndarray[Any, Any]:
    """The array in a ``.npy`` file, or one array of a ``.npz`` archive.

    Args:
        path: The file.
        key: Which array of an archive; if empty, the one named after the input.
        wanted: The input it is for.

    Raises:
        InputError: It is not such a file, has no such array, or contains Python objects.
        MissingFileError: There is no such file.
        StorageError: It cannot be opened.
    """
    try:
        with Path(path).open("rb") as file:
            return _read(file, path, key or wanted, wanted)
    except FileNotFoundError:
        raise MissingFileError(f"there is no such file, which input '{wanted}' is to be read from", path=path) from None
    except OSError as error:
        reason = f"input '{wanted}' cannot be read from it: {error.strerror or error}"
        raise StorageError(reason, path=path, errno=error.errno) from error


def _read(file: BinaryIO, path: str, key: str, wanted: str) -> np.ndarray[Any, Any]:
    start = file.read(len(_NPY))
    file.seek(0)
    if not start.startswith((_NPY, *_ZIP)):
        hint = "arrays are read from .npy and .npz files, as np.save and np.savez write them"
        raise InputError(f"it is not an array file, but input '{wanted}' is to be read from it", path=path, hint=hint)
    try:
        content = np.load(file, allow_pickle=False)
        if isinstance(content, np.ndarray):
            return content
        if key not in content.files:
            hint = f"it has {', '.join(content.files) or 'none'}; write {path}:NAME"
            raise InputError(f"there is no array '{key}' in it", path=path, hint=hint)
        return content[key]
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        if isinstance(error, InputError):
            raise
        raise _unreadable(error, path, wanted) from error


def _unreadable(error: Exception, path: str, wanted: str) -> InputError:
    if "allow_pickle" in str(error):  # NumPy's message also advises what must never be done with a stranger's file
        hint = "save numbers or text: np.save(path, np.array(values, dtype=np.float32))"
        reason = "it contains Python objects, which are not read because that would run code"
        return InputError(f"{reason}; input '{wanted}' takes an array", path=path, hint=hint)
    hint = "write it again with np.save or np.savez"
    return InputError(f"the array file for input '{wanted}' is damaged: {error}", path=path, hint=hint)
