"""Calls of somebody's model, which may raise anything."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from entrepot.ir.errors import EntrepotError

# What a model may raise when it does not accept its inputs. KeyboardInterrupt, MemoryError and the like pass through.
MODEL_ERRORS = (
    RuntimeError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    AssertionError,
    ArithmeticError,
)

_OURS = str(Path(__file__).parent)
_NOBODYS = ("-packages", "/lib/python", "__autograph_generated_file")
"""What the paths of files contain that are no user's: libraries, and what TensorFlow writes of their functions."""


def call(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    errors: tuple[type[Exception], ...] = MODEL_ERRORS,
) -> Any:
    """What a model returns.

    Args:
        function: The model.
        args: What it is given by position.
        kwargs: What it is given by name.
        errors: What the caller knows that models of its framework raise.

    Raises:
        RuntimeError: It raised an error of a kind that some library defines for itself; the name and text are the same.
        Exception: Any other error that it raised.
    """
    try:
        return function(*args, **kwargs)
    except errors:
        raise
    except (EntrepotError, MemoryError):
        raise
    except Exception as error:
        kind = type(type(error).__name__, (RuntimeError,), {})
        raise kind(str(error)).with_traceback(error.__traceback__) from error


def user_line(error: BaseException) -> str:
    """The innermost line of an error's trace that is neither a library's nor ours."""
    return _innermost(traceback.extract_tb(error.__traceback__))


def user_line_now() -> str:
    """The innermost such line of what is running."""
    return _innermost(traceback.extract_stack())


def _innermost(frames: Sequence[traceback.FrameSummary]) -> str:
    for frame in reversed(frames):
        if not frame.filename.startswith((_OURS, "<")) and not any(each in frame.filename for each in _NOBODYS):
            return f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}: {frame.line}"
    return ""
