"""The zoo to ONNX, to torch, and to ONNX again: the same results, the same axes, the same graph."""

from __future__ import annotations

import pytest

from entrepot.models_zoo import registry
from entrepot.testing.parity import Parity
from tests.importers.torch.networks import built, exported, feeds

OTHERWISE: dict[str, str] = {}
"""Models that come back spelled differently, with the reason."""


@pytest.mark.parametrize("name", registry.names())
def test_a_model_of_the_zoo_comes_back_as_it_went(parity: Parity, name: str) -> None:
    given = feeds(name, built(name).samples[-1])
    parity.round_trip(exported(name), through=["torch"], feeds=given, structure=name not in OTHERWISE)
