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


@pytest.mark.parametrize(
    ("samples", "reason"),
    [
        ({"input": torch.ones(3, 5)}, r"Linear does not take the samples: RuntimeError: mat1"),
        ({"input": True}, "sample 'input' is True, expected a tensor"),
        ({"input": torch.ones(0, 2)}, r"sample 'input' has shape \(0, 2\), expected at least one element"),
        ({"x": torch.ones(3, 2)}, "the samples do not fit forward"),
    ],
)
def test_samples_that_the_model_does_not_take_are_refused(samples: dict[str, Any], reason: str) -> None:
    with pytest.raises(ep.InputError, match=reason):
        ep.export_transformer(torch.nn.Linear(2, 2), samples, task="forward")


def test_a_place_that_cannot_be_written_is_refused_before_the_export(tmp_path: Any) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(ep.InputError, match="exists and is no package"):
        ep.export_transformer(torch.nn.Bilinear(2, 2, 2), path=tmp_path / "taken")
