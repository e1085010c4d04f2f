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
