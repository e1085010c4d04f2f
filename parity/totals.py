"""Integers that say how long something is: lengths that add up to a size, offsets that end at it, the longest length.

Beside them those that have to be there as often as in the sample; see ``marks``.

A model that is given another size has to be given other integers, too. Which ones these are is guessed from the sample,
so whoever changes sizes tries the integers as they are first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np

from entrepot.parity.marks import marked
from entrepot.parity.tolerance import classify

Key = TypeVar("Key", bound=Hashable)


class Total(NamedTuple):
    """How integers tell a size.

    Attributes:
        read: The size that they tell, or ``None`` if they are not of that kind.
        fit: Integers of the same shape, like those given, that tell another size.
    """

    read: Callable[[np.ndarray], int | None]
    fit: Callable[[np.ndarray, int], np.ndarray]


def fitted(
    total: Total, sample: Mapping[Key, np.ndarray], resized: Mapping[Key, np.ndarray]
) -> dict[Key, np.ndarray] | None:
    """Resized arrays with integers that tell their sizes as those of the sample do.

    Args:
        total: How they tell it.
        sample: The arrays by name or number.
        resized: The same with other sizes.

    Returns:
        ``None`` if nothing has to be changed.
    """
    changed = {key: new for key, values in sample.items() if (new := _fitted(total, key, values, sample, resized))}
    return {**resized, **{key: new[0] for key, new in changed.items()}} if changed else None


def _fitted(
    total: Total,
    key: Key,
    values: np.ndarray,
    sample: Mapping[Key, np.ndarray],
    resized: Mapping[Key, np.ndarray],
) -> tuple[np.ndarray] | None:
    told = total.read(values) if classify(values.dtype) == "integer" and values.size else None
    sizes = list(_sizes(told, key, sample, resized))
    if told is None or not sizes or not resized[key].size:
        return None
    wanted = next((size for size in sizes if size != told), told)
    return None if total.read(resized[key]) == wanted else (total.fit(resized[key], wanted),)


def _sizes(
    told: int | None, key: Key, sample: Mapping[Key, np.ndarray], resized: Mapping[Key, np.ndarray]
) -> Iterator[int]:
    """The new sizes of the axes, of other arrays, whose sizes are told."""
    for other, array in sample.items():
        if other != key and told is not None and told > 1:
            yield from (resized[other].shape[axis] for axis, size in enumerate(array.shape) if size == told)


def _sum(values: np.ndarray) -> int | None:
    return int(values.sum()) if values.ndim < 2 and values.min() >= 0 else None


def _split(values: np.ndarray, size: int) -> np.ndarray:
    """A size in as many parts, in proportion, none of them empty if there is enough."""
    least = int(size >= values.size)
    ends = np.cumsum(values.reshape(-1).astype(np.float64) + 1e-9)
    ends = np.rint(ends * (size - least * values.size) / ends[-1]).astype(values.dtype)
    return np.asarray(np.diff(ends, prepend=0) + least, values.dtype).reshape(values.shape)


def _end(values: np.ndarray) -> int | None:
    offsets = values.ndim == 1 and values.size > 1 and values[0] == 0 and bool((np.diff(values) >= 0).all())
    return int(values[-1]) if offsets else None


def _ends(values: np.ndarray, size: int) -> np.ndarray:
    if values.size < 2:
        return values
    lengths = _split(np.maximum(np.diff(values), 0), size)
    return np.concatenate([np.zeros(1, values.dtype), np.cumsum(lengths, dtype=values.dtype)])


def _most(values: np.ndarray) -> int | None:
    return int(values.max())


def _raised(values: np.ndarray, size: int) -> np.ndarray:
    """The largest of them as large as is wanted, and none larger."""
    result = np.minimum(values, size)
    result.flat[np.argmax(values)] = size
    return result


def _count(values: np.ndarray) -> int | None:
    return int(values.max()) + 1


def _counted(values: np.ndarray, size: int) -> np.ndarray:
    return _raised(values, size - 1)


def _area(values: np.ndarray) -> int | None:
    return int(values.prod(-1).sum()) if values.ndim == 2 and values.shape[1] in (2, 3) and values.min() > 0 else None


def _areas(values: np.ndarray, size: int) -> np.ndarray:
    """Other grids, as long as they are: the last one is a row with what the others leave."""
    result: np.ndarray = np.ones_like(values)
    others = values[: _filling(values.prod(-1), size)]
    result[: len(others)] = others
    result[-1, -1] = size - int(result[:-1].prod(-1).sum())
    return result


def _filling(areas: np.ndarray, size: int) -> int:
    """How many of the first grids leave room for the others, at least one each."""
    kept = len(areas) - 1
    while kept and int(areas[:kept].sum()) + len(areas) - kept > size:
        kept -= 1
    return kept


TOTALS: Mapping[str, Total] = {
    "lengths": Total(_sum, _split),
    "offsets": Total(_end, _ends),
    "the longest": Total(_most, _raised),
    "indices": Total(_count, _counted),
    "grids": Total(_area, _areas),
}


TELLING: Mapping[str, Callable[[Mapping[Any, np.ndarray], Mapping[Any, np.ndarray]], dict[Any, np.ndarray] | None]] = {
    **{name: functools.partial(fitted, total) for name, total in TOTALS.items()},
    "marks": marked,
}
"""For each way in which integers may tell a size: resized arrays with other ones, or ``None``."""


def told_sizes(sample: Mapping[Key, Any], resized: Mapping[Key, Any]) -> Iterator[dict[Key, Any]]:
    """Resized arrays with other integers, for each way in which those of the sample may tell a size.

    What is no array, such as a list of them, stays as it is.
    """
    arrays = {key: value for key, value in sample.items() if isinstance(value, np.ndarray) and key in resized}
    for telling in TELLING.values():
        found = telling(arrays, {key: np.asarray(resized[key]) for key in arrays})
        if found is not None:
            yield {**resized, **found}
