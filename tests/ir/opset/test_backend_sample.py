"""A sample of onnx's backend tests over the opsets; ``benchmarks/opset_corpus.py`` runs them all."""

from __future__ import annotations

import argparse
from collections import Counter

import pytest

from tests.sweeps.corpus import KINDS, sweep
from tests.sweeps.inside import PLACES

EVERY = 37
BAD = ["wrong", "invalid", "crashed"]


def sampled(targets: str, every: int, inside: str | None = None) -> dict[int, Counter[str]]:
    options = argparse.Namespace(
        targets=targets, kind=KINDS, match="", via=None, inside=inside, every=every, list=BAD, json=None
    )
    return sweep(options)[0]


@pytest.fixture(scope="module")
def swept() -> dict[int, Counter[str]]:
    return sampled("7,9,11,12,13,15,17,18,20,21,23,26,28", EVERY)


def test_no_conversion_is_wrong_invalid_or_crashes(swept: dict[int, Counter[str]]) -> None:
    bad = {target: counts[key] for target, counts in swept.items() for key in ("wrong", "invalid", "crashed")}
    assert set(bad.values()) == {0}


def test_nothing_is_refused_on_the_way_up(swept: dict[int, Counter[str]]) -> None:
    assert swept[28]["refused"] == 0


def test_what_can_certainly_be_said_at_an_older_opset_is(swept: dict[int, Counter[str]]) -> None:
    counts = sum(swept.values(), Counter[str]())
    right, missing = counts["certain, right"], counts["certain, refused"]
    assert right > 200
    assert right / (right + missing) >= 0.98


@pytest.mark.parametrize("place", PLACES)
def test_what_can_be_converted_can_be_converted_inside(place: str, swept: dict[int, Counter[str]]) -> None:
    counts = sampled("11,17,20", EVERY, place)
    for target, inside in counts.items():
        assert not any(inside[verdict] for verdict in BAD)
        outside = swept[target]
        assert inside["right"] / (inside["right"] + inside["refused"]) >= 0.97 * outside["right"] / (
            outside["right"] + outside["refused"]
        )
