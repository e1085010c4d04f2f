"""What a caller gives, as arrays."""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection, Mapping
from typing import Any, TypeAlias

import numpy as np

from entrepot.ir.arguments import PathLike, as_path, expected
from entrepot.ir.errors import InputError
from entrepot.runtime.arrays import as_array
from entrepot.runtime.generation.settings import SETTINGS, Settings

Array: TypeAlias = np.ndarray[Any, Any]

_MANIFEST = "entrepot.json"


def check_known(given: Collection[str], inputs: Collection[str]) -> None:
    """Refuse names of what is neither an input nor a setting.

    Raises:
        InputError: There is one.
    """
    known = [*inputs, *sorted(SETTINGS)]
    unknown = next((name for name in given if name not in known), None)
    if unknown is not None:
        near = difflib.get_close_matches(unknown, known, 1)
        hint = f"do you mean '{near[0]}'?" if near else f"it takes {', '.join(known)}"
        raise InputError(f"generate has no argument '{unknown}'", hint=hint)


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
        raise InputError(f"{name}: elements are {found.dtype}, expected whole numbers")
    if found.size and not _fits(found, np.dtype(dtype)):
        raise InputError(f"{name}: numbers from {found.min()} to {found.max()} do not fit into {np.dtype(dtype)}")
    return found.astype(dtype, copy=False)


def _fits(numbers: Array, dtype: np.dtype[Any]) -> bool:
    """Whether an integer type has a place for all of them."""
    bounds = np.iinfo(dtype)
    return int(numbers.min()) >= bounds.min and int(numbers.max()) <= bounds.max


def as_tokens(given: Any, name: str) -> Array:
    """Numbers of tokens, in 64 bits: a narrower type may have no place for those that are generated.

    Raises:
        InputError: They are none. A negative one is refused, since a graph would count it from the end.
    """
    found = as_integers(given, name)
    if found.size and found.min() < 0:
        raise InputError(
            f"{name}: {found.min()} is no token",
            hint="padding is a token, which the mask leaves out; others are 0 or more",
        )
    return found


def as_mask(given: Any, shape: tuple[int, ...], name: str, of: str) -> Array:
    """Which tokens count.

    Args:
        given: What the caller says.
        shape: The shape of the tokens.
        name: What the mask is called.
        of: What the tokens are called.

    Raises:
        InputError: It is of another shape, or holds other numbers than 0 and 1.
    """
    try:
        mask = np.asarray(as_array(given))
    except (TypeError, ValueError) as error:
        raise expected(name, "zeros and ones", given) from error
    if mask.shape != shape:
        raise InputError(f"{name} has shape {mask.shape}, expected {shape} as {of}")
    if mask.dtype.kind not in "biuf":
        raise InputError(f"{name}: elements are {mask.dtype}, expected zeros and ones")
    others = mask[(mask != 0) & (mask != 1)]
    if others.size:
        raise InputError(f"{name} holds {others[0]}, expected 1 where a token counts and 0 where it is padding")
    return mask.astype(np.int64)


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
