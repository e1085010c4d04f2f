"""Nodes of trees that ask whether a category is in a set, as columns of numbers that ordinary nodes compare."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal

import numpy as np

from entrepot.exporters.sklearn.array import Symbolic, lifted


class Questions:
    """Columns, and one more for each question: 0 where its answer is left, 1 where it is right.

    Args:
        x: The columns.
        codes: One more than the largest category.
    """

    def __init__(self, x: Symbolic, codes: int) -> None:
        self._x, self._codes = x, codes
        self._places: dict[tuple[int, bytes], int] = {}
        self._tables: dict[int, list[Any]] = {}
        self._order: list[tuple[int, int]] = []

    def ask(
        self, feature: int, left: Collection[int], *, missing_left: bool, known: Collection[int] | None = None
    ) -> int:
        """The column to compare with 0.5.

        Args:
            feature: The column of categories.
            left: Those that go to the left.
            missing_left: Whether what is missing, negative or unknown does.
            known: All categories; ``None`` if those that are not in ``left`` go to the right, known or not.
        """
        goes = np.full(self._codes + 2, 0.0 if missing_left else 1.0)  # last come codes beyond, and missing ones
        if known is None:
            goes[:-1] = 1.0
        else:
            goes[[code for code in known if code < self._codes]] = 1.0
        goes[[code for code in left if code < self._codes]] = 0.0
        return self._column(feature, goes)

    def ask_right(self, feature: int, right: Collection[int], *, missing_left: bool) -> int:
        """The same for categories that go to the right, and all others but missing ones to the left."""
        goes = np.zeros(self._codes + 2)
        goes[[code for code in right if code < self._codes]] = 1.0
        goes[-1] = 0.0 if missing_left else 1.0
        return self._column(feature, goes)

    def _column(self, feature: int, goes: Any) -> int:
        key = feature, goes.tobytes()
        if key not in self._places:
            self._places[key] = self._x.shape[1] + len(self._order)
            tables = self._tables.setdefault(feature, [])
            self._order.append((feature, len(tables)))
            tables.append(goes)
        return self._places[key]

    def columns(self, negative: Literal["missing", "beyond", "truncated"] = "missing") -> Symbolic:
        """The columns with the answers beside them.

        Args:
            negative: What negative codes are: missing; beyond the known ones; or that once the fraction is cut off.
        """
        if not self._order:
            return self._x
        found = {at: self._answers(at, np.stack(tables, 1), negative) for at, tables in self._tables.items()}
        answers = [found[feature][:, at : at + 1] for feature, at in self._order]
        return np.concatenate([self._x, *(answer.astype(self._x.dtype) for answer in answers)], axis=1)

    def _answers(self, feature: int, table: Any, negative: str) -> Symbolic:
        value = self._x[:, feature].astype(np.float64)
        gone, beyond = np.isnan(value), float(self._codes)
        below = value <= -1.0 if negative == "truncated" else value < 0  # which NaN is not
        whole = np.minimum(np.where(gone | below, 0.0, value), beyond)
        code = np.where(gone, beyond + 1, np.where(below, beyond + (negative == "missing"), whole))
        return lifted(self._x.build, table).take(code.astype(np.int64), 0)
