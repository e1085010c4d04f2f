"""What a caller gives, as arrays."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any, TypeAlias

import numpy as np

from entrepot.ir.arguments import PathLike, as_path, expected
from entrepot.ir.errors import InputError
from entrepot.runtime.arrays import as_array
from entrepot.runtime.generation.settings import Settings

Array: TypeAlias = np.ndarray[Any, Any]

_MANIFEST = "entrepot.json"


def prepared(given: Mapping[str, Any], names: Collection[str]) -> dict[str, Array]:
    """The inputs as arrays; what is ``None`` is left out.

    Raises:
        InputError: There is no such input.
    """
    unknown = sorted(given.keys() - set(names))
    if unknown:
        raise InputError(f"there is no input '{unknown[0]}'", hint=f"there are {', '.join(names)}")
    return {name: np.asarray(as_array(value)) for name, value in given.items() if value is not None}


def as_integers(given: Any, name: str, dtype: Any = np.int64) -> Array:
    """Whole numbers as an array.

    Raises:
        InputError: They are something else.
    """
    try:
        found = np.asarray(as_array(given))
    except (TypeError, ValueError) as error:
        raise expected(name, "whole numbers", given) from error
    if found.size and found.dtype.kind not in "iu":
        raise expected(name, "whole numbers", given)
    return found.astype(dtype, copy=False)


def as_rows(given: Any, count: int) -> Array:
    """Numbers of rows, of which there are so many.

    Raises:
        InputError: They are none.
    """
    rows = as_integers(given, "rows")
    if rows.ndim != 1 or (rows.size and not (-count <= rows.min() and rows.max() < count)):
        raise InputError(f"rows are {rows.tolist()}, expected a list of numbers below {count}")
    return rows


def as_files(given: Any) -> dict[str, PathLike | bytes]:
    """Files by name, as a package keeps them: where they are, or what is in them.

    Raises:
        InputError: A name is none of a file in a folder, or a file is neither of the two.
    """
    if not (isinstance(given, Mapping) and all(isinstance(name, str) for name in given)):
        raise expected("files", "paths by name", given)
    for name in given:
        if name in ("", ".", "..") or name != os.path.basename(name) or "\0" in name or name == _MANIFEST:
            raise InputError(f"files cannot have the name {name!r}", hint="give names without folders")
    return {name: place if isinstance(place, bytes) else as_path(place, "files") for name, place in given.items()}


def default_mask(tokens: Array, settings: Settings) -> Array:
    """Which tokens count where nobody says so: all but padding, if padding can be told from the end of a row."""
    pad = settings.pad_token_id
    shape = tokens.shape[:2]
    if tokens.dtype.kind != "i" or pad is None or pad in settings.eos_token_id:
        return np.ones(shape, np.int64)
    return (tokens != pad).astype(np.int64)
