"""Models that begin behind operations on text which ONNX does not have: the results of those become inputs."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from entrepot.ir.errors import ConversionError, EntrepotError, UnsupportedOpError

CUT = 'strings="cut" exports what follows it, with its result as an input'
"""The hint of every refusal that a cut gets around."""

REFUSALS = (ConversionError, UnsupportedOpError)
"""What a translation raises that has no counterpart."""


@dataclass(frozen=True)
class Beginning:
    """An input that a cut made.

    Attributes:
        name: What it is called.
        made_by: What it is, ``the result of Hashing 'hashing'``.
        before: Other operations before that one that no graph can express either, in order.
    """

    name: str
    made_by: str
    before: Sequence[str] = ()

    def __str__(self) -> str:
        others = f", as {'does' if len(self.before) == 1 else 'do'} {', '.join(self.before)} before it"
        return f"input '{self.name}' is {self.made_by}, which stays in Python{others if self.before else ''}"


def may_be_cut(error: EntrepotError) -> bool:
    """Whether a refusal is about text, so that a model can begin behind what was refused."""
    return error.hint == CUT


def free_name(wanted: str, taken: Collection[str]) -> str:
    """The name of a new input: letters, digits and underscores, and a number where others are called so."""
    word = "".join(letter if letter.isalnum() else "_" for letter in wanted).strip("_") or "text"
    names = itertools.chain((word,), (f"{word}_{number}" for number in itertools.count(1)))
    return next(name for name in names if name not in taken)


def refuse_rest(noun: str) -> ConversionError:
    """Of a model that is nothing but operations on text."""
    return ConversionError(
        f"nothing of the {noun} is left behind its operations on text", hint="keep all of it in Python"
    )
