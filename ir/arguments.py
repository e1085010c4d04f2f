"""Arguments of public functions: taken as they are meant if that is clear, else refused with what is expected."""

from __future__ import annotations

import math
import operator
import os
from typing import Any, SupportsFloat, SupportsIndex, TypeAlias, TypeVar

from entrepot.ir.errors import InputError

IntegerLike: TypeAlias = "int | float | str | SupportsIndex"
"""A whole number, however it is written: ``18``, ``18.0``, ``"18"``, a NumPy integer. Never a boolean."""

NumberLike: TypeAlias = "float | str | SupportsFloat"
"""A number, or its text. Never a boolean."""

PathLike: TypeAlias = "str | os.PathLike[str]"

T = TypeVar("T")

_SHOWN = 40


def described(value: Any) -> str:
    """A value for a message: ``'eighteen'``, ``None``, ``3.5``; for what may be large only its type, ``a Tensor``."""
    if isinstance(value, str | bytes):
        return repr(value) if len(value) <= _SHOWN else f"{value[:_SHOWN]!r}..."
    if value is None or isinstance(value, bool | float) or (isinstance(value, int) and abs(value) < 10**_SHOWN):
        return repr(value)
    if isinstance(value, type):
        return f"the class {value.__name__}"
    kind = type(value).__name__
    return f"{'an' if kind[:1] in 'AEIOaeio' or kind == 'ndarray' else 'a'} {kind}"


def expected(what: str, wanted: str, given: Any, hint: str | None = None) -> InputError:
    """The error for an argument of the wrong kind."""
    return InputError(f"{what} is {described(given)}, expected {wanted}", hint=hint)


def as_integer(given: Any, what: str, *, least: int | None = None, hint: str | None = None) -> int:
    """A whole number.

    Raises:
        InputError: It is none, or less than ``least``.
    """
    number = _integer(given)
    if number is None or (least is not None and number < least):
        wanted = "a whole number" if least is None else f"a whole number of {least} or more"
        raise expected(what, wanted, given if number is None else number, hint)
    return number


def _integer(given: Any) -> int | None:
    if isinstance(given, bool):
        return None
    try:
        if isinstance(given, float):
            return int(given) if given.is_integer() else None
        return int(given) if isinstance(given, str) else operator.index(given)
    except (TypeError, ValueError, RuntimeError):  # what frameworks raise for an array that is not a single integer
        return None


def as_opset(given: Any, what: str = "opset") -> int:
    """A version of an operator set: ``18``, ``"18"`` and ``18.0`` are the same.

    Raises:
        InputError: It is not a whole number.
    """
    return as_integer(given, what, hint="18, or a version per domain: {'': 18, 'ai.onnx.ml': 3}")


def as_number(given: Any, what: str, *, hint: str | None = None) -> float:
    """A finite number that is not negative.

    Raises:
        InputError: It is none.
    """
    number = _number(given)
    if number is None or not math.isfinite(number) or number < 0:
        raise expected(what, "a finite number, not negative", given, hint)
    return number


def _number(given: Any) -> float | None:
    if isinstance(given, bool | bytes | bytearray) or getattr(given, "ndim", 0) != 0:
        return None
    try:
        return float(given)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return None


def as_flag(given: Any, what: str) -> bool:
    """``True`` or ``False``, NumPy's included; anything else would be true by accident.

    Raises:
        InputError: It is neither.
    """
    if isinstance(given, bool):
        return given
    if type(given).__name__ in ("bool", "bool_") and getattr(given, "ndim", None) == 0:  # NumPy's, not imported here
        return bool(given)
    raise expected(what, "True or False", given)


def as_path(given: Any, what: str = "path") -> PathLike:
    """A path that names something.

    Raises:
        InputError: It is none.
    """
    path: PathLike | None = given if isinstance(given, str | os.PathLike) else None
    text: Any = None if path is None else os.fspath(path)
    if path is None or not isinstance(text, str) or not text or "\0" in text:
        raise expected(what, "a path (str or PathLike)", given)
    return path


def as_names(given: Any, what: str) -> tuple[str, ...]:
    """A list of names, or a single name.

    Raises:
        InputError: They are not strings, or one is empty.
    """
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) and name for name in names):
        raise expected(what, "a list of names", given)
    return tuple(names)


def as_choice(given: Any, choices: tuple[T, ...], what: str) -> T:
    """One of several words.

    Raises:
        InputError: It is none of them.
    """
    if isinstance(given, str) and given in choices:
        return choices[choices.index(given)]
    raise expected(what, " or ".join(f'"{choice}"' for choice in choices), given)


def as_kind(given: Any, kind: type[T], what: str, hint: str | None = None) -> T:
    """An argument that must be of one class.

    Raises:
        InputError: It is of another.
    """
    if not isinstance(given, kind):
        raise expected(what, f"a {kind.__name__}", given, hint)
    return given
