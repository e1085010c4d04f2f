"""Texts with a number in them that only the graph knows: names of parts, as in ``self.experts[f"expert_{index}"]``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch

from entrepot.exporters.torch.rewriting.environment import expression, hint
from entrepot.exporters.torch.upstream import FakeTensor


@dataclass(frozen=True, eq=False)
class Text:
    """A text that is not known. It is no ``str``: nothing but a name can be made of it, and whatever asks is refused.

    Attributes:
        number: What stands in it, a tensor or a size.
        before: What is before that.
        after: What is behind it.
    """

    number: Any
    before: str = ""
    after: str = ""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise TypeError("it is not known what the text says")

    def __add__(self, other: str) -> Text:
        return Text(self.number, self.before, self.after + other)

    def __radd__(self, other: str) -> Text:
        return Text(self.number, other + self.before, self.after)

    def numbers(self, names: Iterable[Any]) -> dict[str, int]:
        """Which of some names it may be, each with the number that it is then."""
        found = {}
        for name in names:
            if isinstance(name, str) and name.startswith(self.before) and name.endswith(self.after):
                inside = name[len(self.before) : len(name) - len(self.after)]
                if inside.isdecimal() and str(int(inside)) == inside:
                    found[name] = int(inside)
        return found


def text(*pieces: Any) -> Any:
    """``f"before{number}after"``."""
    unknown = [at for at, piece in enumerate(pieces) if isinstance(piece, Text) or _is_number(piece)]
    if len(unknown) != 1:
        return "".join(map(format, pieces))
    (at,) = unknown
    found = pieces[at] if isinstance(pieces[at], Text) else Text(pieces[at])
    return "".join(map(format, pieces[:at])) + found + "".join(map(format, pieces[at + 1 :]))


def is_unknown(value: Any) -> bool:
    """Whether Python cannot tell a number."""
    if isinstance(value, torch.SymInt):
        return hint(value) is None and not expression(value).is_Integer
    return isinstance(value, FakeTensor) and value.numel() == 1 and getattr(value, "constant", None) is None


def _is_number(value: Any) -> bool:
    """Whether it is an unknown number that reads as digits alone."""
    if isinstance(value, torch.Tensor) and (value.dim() or value.dtype.is_floating_point or value.dtype is torch.bool):
        return False
    return is_unknown(value)
