"""What ``export_transformer`` is asked for is done, or refused before anything is exported."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import entrepot as ep


@pytest.mark.parametrize(
    "asked", [{"num_beams": 4}, {"do_sample": True}, {"do_sample": False}, {"repetition_penalty": True}]
)
def test_what_only_a_loop_in_the_graph_has_built_in_is_refused_without_one(asked: dict[str, Any]) -> None:
    (name,) = asked
    with pytest.raises(ep.InputError, match=rf"{name} is for loop='in_graph'.*package.generate\(\)"):
        ep.export_transformer(torch.nn.Linear(2, 2), **asked)
