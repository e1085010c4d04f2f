"""Common factors of sizes are cancelled without a look at what is within them."""

from __future__ import annotations

import pytest
import sympy

from entrepot.exporters.torch.capture.cancelling import cancelling
from entrepot.exporters.torch.upstream import size_functions

X, Y = sympy.symbols("x y", integer=True, positive=True)
FLOOR = size_functions.FloorDiv
CELLS, ROWS = FLOOR(X - 1, 8) + 1, FLOOR(Y - 1, 16) + 1
DIVIDED = [
    (9 * CELLS, CELLS, 9),
    (9 * FLOOR(X - 1, 8) + 9, CELLS, 9),
    (sympy.expand(9 * CELLS * ROWS), sympy.expand(3 * CELLS), 3 * ROWS),
    (X**2 * Y + X * Y, X * Y, None),
    (6 * X * CELLS, 4 * X, None),
    (X * Y, X**2 * Y, None),
    (6 * X + 3, sympy.Integer(6), None),
]


@pytest.mark.parametrize(("number", "by", "expected"), DIVIDED)
def test_quotients_are_what_they_were(monkeypatch, number, by, expected):
    monkeypatch.setattr(sympy, "simplify", None)  # torch's way
    with cancelling():
        found = FLOOR(number, by)
    assert expected is None or sympy.expand(found - expected) == 0
    for sizes in ({X: 1, Y: 1}, {X: 17, Y: 3}, {X: 64, Y: 129}):
        assert found.subs(sizes) == number.subs(sizes) // by.subs(sizes)


def test_what_is_within_stays():
    inner = FLOOR(2 * X + 2 * Y, 3)
    with cancelling():
        assert FLOOR(5 * inner * X, X) == 5 * inner
