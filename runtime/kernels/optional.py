"""Optionals: a value, or ``None`` for an empty one."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.ir.errors import InputError
from entrepot.runtime.kernels.backend import Array, Backend
from entrepot.runtime.kernels.table import shared


@shared("Optional", 28)
def optional(xp: Backend, input: Any = None, *, type: Any = None) -> Any:
    """An optional that holds ``input``, or nothing; ``type`` says what it could have held."""
    return input


@shared("OptionalGetElement", 28)
def optional_get_element(xp: Backend, input: Any) -> Any:
    """What the optional holds."""
    if input is None:
        raise InputError("OptionalGetElement: the optional is empty", hint="ask OptionalHasElement first")
    return input


@shared("OptionalHasElement", 28)
def optional_has_element(xp: Backend, input: Any = None) -> Array:
    """Whether the optional holds something, as a 0-d bool."""
    return xp.asarray(input is not None, np.dtype(np.bool_))
