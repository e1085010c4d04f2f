"""The cycle collector is held off, and left as it was found."""

from __future__ import annotations

import gc

import pytest

from entrepot.ir.collector import collector_paused, collector_sparing


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


def test_what_was_made_inside_is_old_afterwards_and_not_out_of_sight() -> None:
    with collector_paused():
        made = [[]]
    assert any(item is made for item in gc.get_objects(generation=2))
    assert not gc.get_freeze_count()


def test_objects_that_somebody_froze_stay_frozen() -> None:
    gc.freeze()
    try:
        with collector_paused():
            pass
        assert gc.get_freeze_count()
    finally:
        gc.unfreeze()


def test_all_objects_are_seldom_searched_while_frameworks_are_spared() -> None:
    before = gc.get_threshold()
    with collector_sparing():
        assert gc.get_freeze_count()
        assert gc.get_threshold()[:2] == before[:2]
        assert gc.get_threshold()[2] > before[2]
    assert gc.get_threshold() == before
    with pytest.raises(KeyError), collector_sparing():
        raise KeyError
    assert gc.get_threshold() == before
    assert not gc.get_freeze_count()
