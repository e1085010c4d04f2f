"""Numbers that the text computes in Python: sizes, axes, counts, and what is made of them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from entrepot.runtime.planning.plan import Value

_NUMBER = re.compile(r"-?\d+")
_ATOM = re.compile(r"[\w.\[\]]+")

_LARGEST = float(np.finfo(np.float32).max)

MOST = 64
"""Elements; what has more of them is a tensor."""


@dataclass(frozen=True)
class Sizes:
    """A number, or a list of them, as expressions of Python.

    Attributes:
        items: One expression each; ``None`` where only the text of the whole list is known.
        rank: 0 for a number, 1 for a list.
        dtype: What ONNX says they are.
        natural: Whether none of them is below 0.
        text: The list where ``items`` is ``None``.
    """

    items: tuple[str, ...] | None
    rank: int
    dtype: ir.DataType = ir.DataType.INT64
    natural: bool = False
    text: str = ""

    def __str__(self) -> str:
        if self.items is None:
            return self.text
        return self.items[0] if self.rank == 0 else f"[{', '.join(self.items)}]"

    @property
    def arguments(self) -> str:
        """As the arguments of a method: ``b, -1``."""
        return f"*{self.text}" if self.items is None else ", ".join(self.items)

    @property
    def known(self) -> list[int] | None:
        """The numbers themselves, where none is computed."""
        if self.items is None or not all(_NUMBER.fullmatch(item) for item in self.items):
            return None
        return [int(item) for item in self.items]


def of_constant(value: Value | None) -> Sizes | None:
    """A constant as numbers; ``None`` for what is no list of a few numbers."""
    array = None if value is None else value.constant
    if not isinstance(array, np.ndarray) or array.ndim > 1 or array.size > MOST or array.dtype.kind not in "iufb":
        return None
    items = tuple(literal(item, array.dtype) for item in array.reshape(-1))
    natural = array.dtype.kind in "iu" and bool((array >= 0).all())
    return Sizes(items, array.ndim, ir.DataType.from_numpy(array.dtype), natural)


def literal(item: object, dtype: np.dtype) -> str:
    """A number as Python writes it; as short as its own type allows where torch rounds it to that type again."""
    number = item.item() if isinstance(item, np.generic) else item
    if not isinstance(number, float):
        return repr(number)
    if not math.isfinite(number):
        return f'float("{number}")'
    if dtype == np.float32:
        short = float(str(np.float32(number)))
        number = short if abs(short) <= _LARGEST else number  # torch takes none beyond
    return repr(number).replace("e+", "e")


def extreme(item: object) -> str | None:
    """``"max"`` or ``"min"`` where a float is the largest or the lowest of its type."""
    if not isinstance(item, np.float32 | np.float64) or abs(item) != np.finfo(item.dtype).max:
        return None
    return "max" if item > 0 else "min"


def atomic(text: str) -> bool:
    """Whether an expression needs no brackets beside an operator."""
    return _ATOM.fullmatch(text) is not None


def bracketed(text: str) -> str:
    """An expression as an operand."""
    return text if atomic(text) else f"({text})"


def is_number(text: str) -> bool:
    """Whether an expression is an integer written out."""
    return _NUMBER.fullmatch(text) is not None


def same_shape(left: Sequence[object] | None, right: Sequence[object] | None) -> bool:
    """Whether two shapes are declared, and declared alike."""
    return left is not None and right is not None and None not in left and tuple(left) == tuple(right)
