"""Rewritten functions do in Python what they did before; only a capture makes branches and loops of their steps."""

from __future__ import annotations

import contextlib
import inspect
from typing import TYPE_CHECKING

import pytest

from entrepot.exporters.torch.rewriting.functions import rewritten

if TYPE_CHECKING:
    from numbers import Number as Known


def returns_early(x):
    if x > 3:
        return "large"
    if x < 0:
        if x < -10:
            return "tiny"
        x = -x
    return x


def leaves_loops(items):
    seen = []
    for item in items:
        if item == 0:
            continue
        if item > 5:
            break
        for other in range(item):
            if other == 3:
                return seen, other
            seen.append((item, other))
    else:
        seen.append("all")
    return seen


def runs_while(n, *rest, step=2, **more):
    done = 0
    while True:
        n -= step
        if n < 0:
            break
        done += 1
    while n < 3:
        n += 1
        if n == 2:
            continue
        done += 10 * n
    return done, rest, more


def chooses(a, b=None):
    word = "both" if a and b else "one" if a or b else "none"
    assert word, "never empty"
    return word, [each * 2 for each in range(a) if each != 1], {k: 2 * v for k, v in zip("ab", (a, 1), strict=True)}


def annotates(n):
    def moved(x: Known) -> Known:
        y: Known = x + n
        return y

    return [moved(each) for each in range(3)] if n else []


def writes_to_parts(n):
    table = [[0] * 3 for _ in range(3)]
    table[1][n] = 5
    table[1][n] += 2
    table[0][:2] = [1, 1]
    with open_nothing() as word:
        if n:
            word = word + "!"  # noqa: PLW2901 - a variable of the statement changes
    try:
        table[n + 7] = 1
    except IndexError as error:
        word += type(error).__name__
    return table, word


class open_nothing:  # noqa: N801
    def __enter__(self):
        return "entered"

    def __exit__(self, *_):
        return False


class Base:
    __hidden = 4

    def value(self, x):
        return x + self.__hidden


class Derived(Base):
    def value(self, x):
        if x > 1:
            x = super().value(x)
        return x


def closes_over(k):
    def inner(x):
        total = 0
        for i in range(x):
            total += i * k
        return total

    return inner


def takes_the_first(items):
    found = next((each for each in items if each > 2), None)
    if found is None:
        return "none"
    rest = iter(each for each in items if each > 2)
    return found, next(rest), sum(each for each in items)


def deletes(n):
    table, name = {"a": n, "b": 2}, "x"
    if n:
        left = n + 1
        total = left
        del left, table["b"], name
    else:
        total = -1
    return total, table


def lengthens(n):
    """A list that is known by two names."""
    lists = {key: [n] for key in "ab"}
    one = lists["a"]
    lists["a"] += [1]
    lists["b"] = lists["b"] + [2]
    return one, lists, {each: {key: each for key in range(n) if key} for each in one}


def generates(n):
    for i in range(n):
        yield 2 * i


@contextlib.contextmanager
def manages(n):
    yield 2 * n


CASES = [
    *((returns_early, (x,)) for x in (5, 2, -3, -20)),
    *((leaves_loops, (items,)) for items in ([], [1, 0, 2], [2, 9, 1], [1, 4])),
    *((takes_the_first, (items,)) for items in ([], [1, 2], [1, 5, 2, 7, 9])),
    *((runs_while, (n, "a")) for n in (0, 7)),
    *((annotates, (n,)) for n in (0, 7)),
    *((chooses, args) for args in ((0,), (3,), (2, 1), (0, 1))),
    *((writes_to_parts, (n,)) for n in (0, 2)),
    *((lengthens, (n,)) for n in (0, 2)),
    *((deletes, (n,)) for n in (0, 2)),
    *((closes_over(3), (n,)) for n in (0, 4)),
]


@pytest.mark.parametrize(("function", "args"), CASES)
def test_a_rewritten_function_returns_what_it_did_before(function, args):
    new = rewritten(function)
    assert new is not None
    assert new(*args) == function(*args)
    assert inspect.signature(new) == inspect.signature(function)


def test_methods_keep_super_and_private_names():
    for x in (0, 5):
        assert rewritten(Derived.value)(Derived(), x) == Derived().value(x)


def test_an_error_is_raised_where_it_was():
    def failing(x):
        if x:
            x = x / 0
        return x

    with pytest.raises(ZeroDivisionError) as caught:
        rewritten(failing)(1)
    frame = caught.traceback[-1]
    assert frame.path.name == "test_rewriting.py"
    assert "x / 0" in str(frame.statement)


def test_a_generator_gives_all_of_its_items_at_once():
    assert rewritten(generates)(3) == [0, 2, 4]


def test_context_managers_and_functions_of_libraries_are_left_alone():
    assert rewritten(manages.__wrapped__) is None
    assert rewritten(inspect.signature) is None
