"""Axes that vary only in steps: a module that halves a height three times takes 24 or 32 in place of 16, but not 17."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection

_FAR = 96
"""Where the double of a size is refused, this much more may be accepted: by 2, 3, 4, 6, 8, 12, 16, 24, 32 at a time."""

_BEFORE = 2
"""Tokens before those of a grid: of a class, and of a teacher."""


def sizes_around(size: int, used: Collection[int], step: int = 1) -> list[int]:
    """Up to two larger and two smaller sizes, whole steps away.

    Args:
        size: The present size.
        used: Sizes to avoid.
        step: What all of them differ by, or by a multiple of it.
    """
    half = -(-size // (2 * step)) * step
    larger = next(other for other in itertools.count(size + step, step) if other not in used)
    beyond = max(size + size // step * step, larger) + step
    largest = next(other for other in itertools.count(beyond, step) if other not in used)
    smaller = next((other for other in range(size - step, 1, -step) if other not in used), None)
    smallest = next((other for other in range(size - half, 1, -step) if other not in used), None)
    return list(dict.fromkeys(other for other in (larger, largest, smaller, smallest) if other is not None))


def squares_around(size: int) -> list[int]:
    """Two other squares, each with as many more as this size has: the tokens of a square grid, and those before them.

    Args:
        size: The present size, up to two more than a square.
    """
    root, more = math.isqrt(size), beside_square(size)
    return [other * other + more for other in (root + 1, root + 2)] if root > 1 and more <= _BEFORE else []


def beside_square(size: int) -> int:
    """How much more a size is than the largest square in it."""
    return size - math.isqrt(size) ** 2


def smallest_step(
    size: int,
    accepts: Callable[[int], bool],
    may_be_far: Callable[[], bool] = lambda: True,
    likely: Collection[int] = (),
) -> int:
    """The smallest step by which a size can grow: that to its double, or a far one, divided for as long as possible.

    Args:
        size: The present size.
        accepts: Tries another one; costs a run of the model.
        may_be_far: Whether a far one is worth a run, which takes many times as long as one at the present size.
        likely: Steps of other sizes, which are tried first: most models halve a height as often as a width.

    Returns:
        1 if there is no step.
    """
    found = next((step for step in likely if _is_smallest(step, size, accepts)), 0)
    if found:
        return found
    steps = (step for step in dict.fromkeys((size, _FAR)) if step > 1 and (step == size or may_be_far()))
    found = next((step for step in steps if accepts(size + step)), 1)
    return _divided(found, lambda step: accepts(size + step))


def smallest_step_back(size: int, accepts: Callable[[int], bool]) -> int:
    """The smallest step by which a size can shrink, where a table that is read from its beginning lets none grow.

    Args:
        size: The present size.
        accepts: Tries another one.

    Returns:
        1 if there is no step.
    """
    steps = (size // part for part in range(2, size // 2 + 1) if size % part == 0 and _is_prime(part))
    found = next((step for step in steps if accepts(size - step)), 1)
    return _divided(found, lambda step: accepts(size - step))


def _divided(found: int, accepts: Callable[[int], bool]) -> int:
    """A step divided for as long as the smaller one is accepted."""
    divisor = 2
    while divisor <= found:
        if found % divisor == 0 and accepts(found // divisor):
            found //= divisor
        else:
            divisor += 1
    return found


def _is_smallest(step: int, size: int, accepts: Callable[[int], bool]) -> bool:
    """Whether a size can grow by a step that divides those that are tried, and by no part of it."""
    divides = size % step == 0 or _FAR % step == 0
    parts = (step // part for part in range(2, step + 1) if step % part == 0 and _is_prime(part))
    return divides and accepts(size + step) and not any(accepts(size + part) for part in parts)


def _is_prime(number: int) -> bool:
    return all(number % each for each in range(2, math.isqrt(number) + 1))
