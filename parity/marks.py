"""Integers that stand for something else, as often in every row: places for a picture in a text, the end of a text.

A model that is given longer rows has to be given as many of them as before.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

import numpy as np

from entrepot.parity.tolerance import classify

Key = TypeVar("Key", bound=Hashable)


def marked(sample: Mapping[Key, np.ndarray], resized: Mapping[Key, np.ndarray]) -> dict[Key, np.ndarray] | None:
    """Resized arrays, with marks as often as in the sample; ``None`` if nothing has to be changed.

    Args:
        sample: The arrays by name or number.
        resized: The same with other sizes.
    """
    changed = {key: new for key, rows in sample.items() if (new := _marked(rows, resized[key])) is not None}
    return {**resized, **changed} if changed else None


def _marked(rows: np.ndarray, resized: np.ndarray) -> np.ndarray | None:
    if classify(rows.dtype) != "integer" or rows.ndim != 2 or not rows.size or not resized.size:
        return None
    marks = _marks(rows)
    count, length = resized.shape
    is_mark = np.isin(rows[0], marks)
    room = length - int(is_mark.sum())
    if not marks.size or is_mark.all() or room < 0:
        return None
    found = np.stack([_row(row, np.isin(row, marks), length, room) for row in np.resize(rows, (count, rows.shape[1]))])
    return None if np.array_equal(found, resized) else found.astype(rows.dtype)


def _marks(rows: np.ndarray) -> np.ndarray:
    """What occurs most often, and in every row as often; that may be once, if not everything does."""
    values, counts = np.unique(rows[0], return_counts=True)
    alike = [((rows == value).sum(1) == count).all() for value, count in zip(values, counts, strict=True)]
    values, counts = values[alike], counts[alike]
    return values[counts == counts.max()] if counts.size else values


def _row(row: np.ndarray, is_mark: np.ndarray, length: int, room: int) -> np.ndarray:
    """A row with all of its marks: without the last of the others, or with more of them at the end."""
    others = np.flatnonzero(~is_mark)
    kept = np.sort(np.concatenate([np.flatnonzero(is_mark), others[:room]]))
    more = np.resize(row[others], length - len(kept))
    return np.concatenate([row[kept], more])
