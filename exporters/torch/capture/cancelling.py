"""Common factors of a size and what it is divided by, cancelled as those of polynomials.

torch (2.13) divides both by the factor and has sympy simplify what it gets, and all that is within: that takes minutes
for the number of anchors on five grids of an image that has been resized.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterator
from typing import Any
from unittest import mock

import sympy  # type: ignore[import-untyped]

from entrepot.exporters.torch.upstream import size_functions


@contextlib.contextmanager
def cancelling() -> Iterator[None]:
    """Inside, quotients of sizes are simplified no further than that."""
    names = types.ModuleType(sympy.__name__)
    vars(names).update(vars(sympy), simplify=_cancelled)
    with mock.patch.object(size_functions, "sympy", names):
        yield


def _cancelled(quotient: Any) -> Any:
    known: dict[Any, Any] = {}
    number = _polynomial(quotient, known)
    if not _is_whole(number):
        number = sympy.cancel(number)
    return number.xreplace({stands: what for what, stands in known.items()})


def _polynomial(term: Any, known: dict[Any, Any]) -> Any:
    """A term with a symbol for all that is no sum, product or power in it."""
    if term.is_Add or term.is_Mul:
        return term.func(*(_polynomial(part, known) for part in term.args))
    if term.is_Pow and term.exp.is_Integer:
        return _polynomial(term.base, known) ** term.exp
    return term if term.is_Number or term.is_Symbol else known.setdefault(term, sympy.Dummy(integer=True))


def _is_whole(term: Any) -> bool:
    """Whether nothing is divided in a term."""
    divided = (part.exp.is_negative if part.is_Pow else part.q > 1 for part in term.atoms(sympy.Pow, sympy.Rational))
    return not any(divided)
