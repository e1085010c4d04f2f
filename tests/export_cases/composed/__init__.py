"""Two steps of sequences or of pictures, put together in some way: what is right alone may be wrong beside something.

Each is written as a user would write it, loops and branches and sizes in Python. Which of the many pairs are cases is
chosen at random, the same ones every time; the sample may be of one row, square, or as long as it is wide.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import nn

from tests.export_cases.case import Built, Case
from tests.export_cases.composed import (
    pictures,
    sequences,
    sequences_in_loops,
    sequences_in_python,
    ways_in_python,
    ways_of_pictures,
    ways_of_sequences,
)
from tests.export_cases.composed.parts import Pictures, Sequences

_Shape = tuple[int, ...]
_Step = Callable[..., Any]


class _Kind(NamedTuple):
    """What steps of one kind are composed in, and how often.

    Attributes:
        base: Has their layers.
        steps: All of them.
        ways: How two of them are put together.
        samples: Shapes, of which each case is exported with one.
        others: The shapes that it is judged at beside that, with a factor and an offset for the values of each.
        count: How many cases there are.
    """

    base: type[nn.Module]
    steps: Sequence[_Step]
    ways: Sequence[_Step]
    samples: Sequence[_Shape]
    others: Sequence[tuple[_Shape, float, float]]
    count: int


_SEQUENCES = _Kind(
    Sequences,
    (*sequences.ALL, *sequences_in_loops.ALL),
    ways_of_sequences.ALL,
    [(2, 7, 8), (3, 8, 8), (1, 9, 8), (4, 4, 8), (2, 6, 8)],
    [((3, 10, 8), 1.0, 0.0), ((5, 5, 8), 1.0, 0.5), ((2, 12, 8), 2.0, -0.5), ((1, 6, 8), 1.0, -0.2)],
    400,
)
_KINDS = {
    "sequences": _SEQUENCES,
    "pictures": _Kind(
        Pictures,
        pictures.ALL,
        ways_of_pictures.ALL,
        [(1, 4, 8, 12), (2, 4, 9, 11), (2, 4, 8, 8), (1, 4, 14, 10), (3, 4, 7, 12)],
        [((2, 4, 10, 13), 1.0, 0.0), ((3, 4, 9, 9), 1.0, 0.5), ((1, 4, 16, 6), 2.0, -0.5)],
        300,
    ),
    "python": _SEQUENCES._replace(steps=sequences_in_python.ALL, count=200),
    "closures": _SEQUENCES._replace(ways=ways_in_python.ALL, count=200),
}


def catalogue() -> list[Case]:
    """The cases; nothing is built yet."""
    return [case for kind in _KINDS for case in _cases(kind)]


def _cases(kind: str) -> list[Case]:
    rng, made = random.Random(0), _KINDS[kind]
    found: dict[str, Case] = {}
    while len(found) < made.count:
        way, first, second = rng.choice(made.ways), rng.choice(made.steps), rng.choice(made.steps)
        sample = rng.choice(made.samples)
        name = f"composed_{kind}/{way.__name__}-{first.__name__}-{second.__name__}-{'x'.join(map(str, sample))}"
        found[name] = Case(name, "composed", _builder(made, (way, first, second), sample))
    return [*found.values()]


def _builder(kind: _Kind, functions: tuple[_Step, ...], sample: _Shape) -> Callable[[], Built]:
    def make() -> Built:
        way, first, second = functions
        members = {"forward": way, "first": first, "second": second}
        module = type(f"Composed{kind.base.__name__}", (kind.base,), members)()
        calls = [
            (torch.randn(shape) * factor + offset,) for shape, factor, offset in [(sample, 1.0, 0.0), *kind.others]
        ]
        return Built(module, tuple(calls))

    return make
