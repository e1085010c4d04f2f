"""The cycle collector is held off, and left as it was found."""

from __future__ import annotations

import gc

import pytest

from entrepot.ir.collector import collector_paused


def test_the_collector_is_off_inside_and_on_again_outside_even_after_an_error() -> None:
    with collector_paused():
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(KeyError), collector_paused():
        raise KeyError
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
