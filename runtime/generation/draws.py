"""Random numbers that a graph can compute, too: the same seed gives the same samples on the host and in a graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]

PRIME = (1 << 31) - 1
"""Numbers are below it, so that products of two of them fit into an int64."""

ROUNDS = (1_013_904_223, 374_761_393, 668_265_263, 1_274_126_177, 19_088_743, 1_442_695_041, 305_419_896)
"""What is added in each round, after which the number is raised to the fifth power: a permutation modulo ``PRIME``."""


def keys(seed: Any, turn: Any, rows: Any) -> Iterator[Any]:
    """What goes into each round beside its constant, by anything that adds and divides."""
    yield from (seed % PRIME, seed // PRIME, turn, rows)
    yield from (0,) * (len(ROUNDS) - 4)


def uniform(seed: int, turn: int, rows: Array) -> Array:
    """A number between 0 and 1 for each row, by the number of the turn.

    Args:
        seed: 0 or above.
        turn: How many tokens were drawn before.
        rows: The numbers of the rows.
    """
    state = np.zeros(len(rows), np.int64)
    for constant, key in zip(ROUNDS, keys(seed, turn, rows.astype(np.int64)), strict=True):
        mixed = (state + key + constant) % PRIME
        squared = mixed * mixed % PRIME
        state = squared * squared % PRIME * mixed % PRIME
    result: Array = (state + 0.5) / PRIME
    return result


def any_seed() -> int:
    """One that nobody chose."""
    return int(np.random.default_rng().integers(1 << 62))
