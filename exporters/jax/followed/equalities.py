"""Comparisons of sizes for equality: JAX takes one that it cannot decide for a no, and these are kept to be tried."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import jax

from entrepot.exporters.calls import user_line_now


class Equalities:
    """What copies of a user's functions compare by.

    Attributes:
        undecided: Pairs of expressions over symbols which were taken for different sizes, and may be the same; with the
            line that compares them.
        constants: Numbers that sizes may be compared with, where no source tells.
    """

    def __init__(self) -> None:
        self.undecided: dict[tuple[str, str], str] = {}
        self.constants: set[int] = set()

    def functions(self) -> dict[str, Any]:
        """By their names in respelled code."""
        return {
            "_ep_equal": self._equal,
            "_ep_unequal": self._unequal,
            "_ep_among": self._among,
            "_ep_not_among": lambda item, items: not self._among(item, items),
            "_ep_got": self._got,
            "_ep_matched": self._matched,
        }

    def unread(self, constants: Iterable[Any]) -> None:
        """Note what a function that nobody can read may compare sizes with."""
        self.constants.update(each for each in constants if type(each) is int and each > 0)

    def pairs(self, symbols: Iterable[str]) -> dict[tuple[str, str], str]:
        """What is to be tried: what copies compared, and what they may have."""
        free = [*symbols]
        guessed = [(symbol, str(number)) for symbol in free for number in self.constants]
        if self.constants:
            guessed += itertools.combinations(free, 2)
        return {**dict.fromkeys(guessed, ""), **self.undecided}

    def _equal(self, left: Any, right: Any) -> Any:
        self._note(left, right)
        return left == right

    def _unequal(self, left: Any, right: Any) -> Any:
        self._note(left, right)
        return left != right

    def _among(self, item: Any, items: Any) -> Any:
        if isinstance(items, tuple | list | set | frozenset | dict):
            for each in items:
                self._note(item, each)
        return item in items

    def _got(self, owner: Any, *args: Any, **kwargs: Any) -> Any:
        """``owner.get``."""
        if isinstance(owner, dict) and args:
            self._among(args[0], owner)
        return owner.get(*args, **kwargs)

    def _matched(self, value: Any, constants: tuple[Any, ...]) -> Any:
        """What ``match`` is told."""
        for each in value if isinstance(value, tuple) else (value,):
            self._among(each, constants)
        return value

    def _note(self, left: Any, right: Any) -> None:
        if isinstance(left, tuple | list) and isinstance(right, tuple | list):
            if len(left) == len(right):
                for one, other in zip(left, right, strict=True):
                    self._note(one, other)
        elif _are_sizes(left, right) and not _is_decided(left, right):
            self.undecided.setdefault((str(left), str(right)), user_line_now())


def _are_sizes(left: Any, right: Any) -> bool:
    are_open = [jax.export.is_symbolic_dim(each) for each in (left, right)]
    return any(are_open) and all(
        found or type(each) is int for found, each in zip(are_open, (left, right), strict=True)
    )


def _is_decided(left: Any, right: Any) -> bool:
    try:
        return bool(left == right or left > right or left < right)
    except jax.errors.InconclusiveDimensionOperation:
        return False
