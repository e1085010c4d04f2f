"""What a caller gives, as arrays."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeAlias

import numpy as np

from entrepot.ir.errors import InputError
from entrepot.runtime.arrays import as_array
from entrepot.runtime.generation.settings import Settings

Array: TypeAlias = np.ndarray[Any, Any]


def prepared(given: Mapping[str, Any], names: Collection[str]) -> dict[str, Array]:
    """The inputs as arrays; what is ``None`` is left out.

    Raises:
        InputError: There is no such input.
    """
    unknown = sorted(given.keys() - set(names))
    if unknown:
        raise InputError(f"there is no input '{unknown[0]}'", hint=f"there are {', '.join(names)}")
    return {name: np.asarray(as_array(value)) for name, value in given.items() if value is not None}


def default_mask(tokens: Array, settings: Settings) -> Array:
    """Which tokens count where nobody says so: all but padding, if padding can be told from the end of a row."""
    pad = settings.pad_token_id
    shape = tokens.shape[:2]
    if tokens.dtype.kind != "i" or pad is None or pad in settings.eos_token_id:
        return np.ones(shape, np.int64)
    return (tokens != pad).astype(np.int64)
