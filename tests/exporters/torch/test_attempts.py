"""Functions that leave a ``try`` in its middle do the same when they are written anew."""

from __future__ import annotations

import pytest

from entrepot.exporters.torch.rewriting.functions import rewritten


def first_or_none(values):
    try:
        return values[0]
    except IndexError:
        pass
    values = [*values, 7]
    return values[0] + 1


def not_caught(values):
    try:
        first = values[0]
    except IndexError:
        return "empty"
    if first == 0:
        raise IndexError("not from the try")
    return first


def said_again(values):
    try:
        return values[0]
    except IndexError as error:
        if len(values) == 0:
            raise ValueError("nothing") from error
        raise


def searched(values):
    seen = []
    for value in values:
        try:
            if value == 3:
                seen.append("three")
            inverse = 6 // value
        except ZeroDivisionError:
            continue
        else:
            if inverse == 1:
                break
        seen.append(inverse)
    return seen


def cleaned(values):
    seen = []
    for value in values:
        try:
            return 6 // value
        except ZeroDivisionError:
            seen.append(value)
    return seen


def at_last(values):
    seen = []
    try:
        return seen, 6 // values[0]
    except ZeroDivisionError:
        return seen, 0
    finally:
        seen.append("done")


VALUES = ([], [0], [1], [2, 0, 3, 6, 1], [0, 0, 4])


def outcome(function, values):
    try:
        return function(list(values))
    except (IndexError, ValueError) as error:
        return type(error), str(error), type(error.__cause__)


@pytest.mark.parametrize("values", VALUES, ids=str)
@pytest.mark.parametrize(
    "function", [first_or_none, not_caught, said_again, searched, cleaned, at_last], ids=lambda each: each.__name__
)
def test_what_leaves_a_try_does_the_same_when_it_is_written_anew(function, values):
    new = rewritten(function)
    assert new is not None
    assert outcome(new, values) == outcome(function, values)
