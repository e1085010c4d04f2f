"""A sample of onnx's backend tests over the opsets; ``benchmarks/opset_corpus.py`` runs them all."""

from __future__ import annotations

import argparse
from collections import Counter

import pytest

from benchmarks.opset_corpus import sweep

EVERY = 37


@pytest.fixture(scope="module")
def swept() -> dict[int, Counter[str]]:
    options = argparse.Namespace(
        targets="7,9,11,12,13,15,17,18,20,21,23,26,28",
        kind=("node", "simple", "pytorch-converted", "pytorch-operator"),
        match="",
        via=None,
        every=EVERY,
        list=["wrong", "invalid", "crashed"],
        json=None,
    )
    return sweep(options)[0]


def test_no_conversion_is_wrong_invalid_or_crashes(swept: dict[int, Counter[str]]) -> None:
    bad = {target: counts[key] for target, counts in swept.items() for key in ("wrong", "invalid", "crashed")}
    assert set(bad.values()) == {0}


def test_nothing_is_refused_on_the_way_up(swept: dict[int, Counter[str]]) -> None:
    assert swept[28]["refused"] == 0


@pytest.mark.parametrize(("target", "share"), [(7, 0.5), (9, 0.65), (13, 0.8), (17, 0.85), (20, 0.9), (26, 0.95)])
def test_most_conversions_down_are_possible(swept: dict[int, Counter[str]], target: int, share: float) -> None:
    counts = swept[target]
    assert counts["right"] >= share * (counts["right"] + counts["refused"])
