"""Arrays of any element type in an ``.npz`` file: NumPy's own format, and a note of the types that it lacks."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from typing import Any, BinaryIO

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]

_NOTE = "element types"
"""The entry that says which arrays are not of the type that they are stored as."""


def write_weights(file: BinaryIO, arrays: Mapping[str, Array]) -> None:
    """Write arrays under their names, as they are in memory; strings as JSON, types of ml_dtypes as their bytes."""
    note = {name: array.dtype.name for name, array in arrays.items() if array.dtype.isbuiltin == 2 or _is_text(array)}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in [*arrays.items(), (_NOTE, np.array(json.dumps(note)))]:
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, _stored(array), allow_pickle=False)


def load_weights(path: str | os.PathLike[str]) -> dict[str, Array]:
    """The arrays of a file that ``ep.to_numpy`` wrote, by name."""
    with np.load(path, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    note = json.loads(arrays.pop(_NOTE).item())
    return {name: _restored(array, note.get(name)) for name, array in arrays.items()}


def _is_text(array: Array) -> bool:
    return array.dtype.kind == "O"


def _stored(array: Array) -> Array:
    if _is_text(array):
        return np.array(json.dumps([list(array.shape), array.reshape(-1).tolist()]))
    if array.dtype.isbuiltin != 2:  # types of other packages are 2
        return np.asarray(array)
    return np.ascontiguousarray(array).reshape(array.shape).view(np.dtype(f"u{array.dtype.itemsize}"))


def _restored(array: Array, name: str | None) -> Array:
    if name is None:
        return array
    if name != "object":
        return array.view(np.dtype(getattr(ml_dtypes, name)))
    shape, texts = json.loads(array.item())
    return np.array(texts, object).reshape(shape)
