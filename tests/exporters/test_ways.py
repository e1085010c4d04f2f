"""Ways to capture a model that are tried one after the other."""

import weakref

import pytest

from entrepot.exporters.ways import let_go


class Weights:
    """Something large."""


def refuse(seen):
    weights = Weights()
    seen.append(weakref.ref(weights))
    try:
        raise KeyError("inside")
    except KeyError as error:
        raise ValueError("outside") from error


def test_an_error_that_is_kept_keeps_nothing_else():
    seen = []
    with pytest.raises(ValueError, match="outside") as caught:
        refuse(seen)
    assert seen[0]() is not None
    let_go(caught.value)
    assert seen[0]() is None
    assert str(caught.value) == "outside"
    assert caught.value.__traceback__ is not None


def test_errors_may_be_reasons_for_each_other():
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one
    let_go(one)
    assert one.__cause__ is other
