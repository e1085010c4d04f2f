"""The tokens of a square grid, of which a module takes the root: the product of two roots is their number again.

torch (2.13) does not see that ``tokens.reshape(rows, side, side, -1)`` takes as many numbers as there are, where
``side`` is ``int(math.sqrt(tokens.shape[1]))``: that holds for squares alone, and no size says that it is one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from contextvars import ContextVar
from typing import Any

import sympy  # type: ignore[import-untyped]

from entrepot.exporters.torch.upstream import size_functions

_ROOT = size_functions.OpaqueUnaryFn_sqrt
_FLOORS = (size_functions.FloorToInt, size_functions.TruncToInt)
_KNOWN: ContextVar[Collection[tuple[int, int]]] = ContextVar("_KNOWN", default=())


@contextlib.contextmanager
def squares_known(sizes: Collection[tuple[int, int]]) -> Iterator[None]:
    """Inside, some sizes are squares, or a few more than squares.

    Args:
        sizes: What each is in the sample, and how many more than a square.
    """
    token = _KNOWN.set(sizes)
    try:
        yield
    finally:
        _KNOWN.reset(token)


def without_roots(node: Any) -> Any:
    """The formula of a size with even powers of such roots as what they are roots of; ``None`` if it has none."""
    if not _KNOWN.get():
        return None
    found = {power: number for power in node.expr.atoms(sympy.Pow) if (number := _power(power, node.shape_env))}
    return node.expr.xreplace(found) if found else None


def _power(power: Any, environment: Any) -> Any:
    root, exponent = power.as_base_exp()
    if not (isinstance(root, _FLOORS) and isinstance(root.args[0], _ROOT) and exponent.is_even and exponent > 0):
        return None
    (number,) = root.args[0].args
    number = number.args[0] if isinstance(number, size_functions.ToFloat) else number
    constant, size = number.as_coeff_Add()
    known = (int(environment.backed_var_to_val.get(size, -1)), -constant)
    return number ** (exponent // 2) if known in _KNOWN.get() else None
