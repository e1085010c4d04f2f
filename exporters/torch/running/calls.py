"""Calls of somebody's module, which may raise anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from entrepot.ir.errors import EntrepotError

# What forward may raise when it does not accept its inputs. KeyboardInterrupt, MemoryError and the like pass through.
MODEL_ERRORS = (
    RuntimeError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    AssertionError,
    ArithmeticError,
    torch.jit.Error,
)


def call(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What a module returns.

    Raises:
        RuntimeError: It raised an error of a kind that some library defines for itself; the name and text are the same.
        Exception: Any other error that it raised.
    """
    try:
        return function(*args, **kwargs)
    except (*MODEL_ERRORS, EntrepotError, MemoryError):
        raise
    except Exception as error:
        kind = type(type(error).__name__, (RuntimeError,), {})
        raise kind(str(error)).with_traceback(error.__traceback__) from error
