"""A module that is told what to choose takes it where it is as good as its own choice, and not otherwise."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from entrepot.exporters.torch.running.chosen import ChoosingAs

SCORES = torch.tensor([[0.5, 1.0, 1.0 + 1e-9, 0.2, 1.0 - 1e-9, 0.7]], dtype=torch.float64)
OWN = [2, 1, 4]


def chosen(places, call=lambda: SCORES.topk(3), scores=SCORES):
    with ChoosingAs([np.array([places])]):
        values, found = call()
    assert torch.equal(values, scores.gather(1, found))
    return found.tolist()[0]


@pytest.mark.parametrize("places", [[4, 2, 1], [1, 4, 2]])
def test_equally_good_places_are_taken(places):
    assert chosen(places) == places


@pytest.mark.parametrize("places", [[2, 1, 5], [2, 2, 1], [2, 1, 6], [2, 1, -1], [2, 1], [2, 1, 4, 5]])
def test_worse_ones_and_none_are_not(places):
    assert chosen(places) == OWN


def test_orders_are_choices_too():
    order = [4, 1, 2, 5, 0, 3]
    assert chosen(order, lambda: SCORES.sort(dim=1, descending=True)) == order
    assert chosen(order, lambda: torch.sort(SCORES, stable=True, dim=1, descending=True)) == order
    assert chosen(order, lambda: SCORES.sort(1)) == [3, 0, 5, 4, 1, 2]


def test_each_choice_is_for_one_call():
    with ChoosingAs([np.array([[4, 2, 1]])]):
        assert SCORES.topk(3).indices.tolist() == [[4, 2, 1]]
        assert SCORES.topk(3).indices.tolist() == [OWN]


def test_single_precision_may_be_off_by_as_much_as_results_may():
    scores = torch.tensor([[0.5, 1.0, 1.0 + 1e-5, 0.2, 1.0 - 1e-5, 0.7]])
    assert chosen([4, 2, 1], lambda: scores.topk(3), scores) == [4, 2, 1]
    assert chosen([4, 2, 1], lambda: scores.double().topk(3), scores.double()) == OWN
    assert chosen([2, 1, 5], lambda: scores.topk(3), scores) == OWN
