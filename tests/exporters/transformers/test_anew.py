"""Models that read all tokens anew after some number of them: their keys were made for shorter texts."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

import entrepot as ep
from entrepot.exporters.transformers.in_graph.loop import looped
from entrepot.runtime.generation.package import Package
from tests.export_cases.generating import TEXT

LENGTH = 12


def model(**stretched: Any) -> Any:
    torch.manual_seed(0)
    config = transformers.Phi3Config(**TEXT, original_max_position_embeddings=LENGTH, **stretched)
    return transformers.Phi3ForCausalLM(config).eval()


def stretched() -> Any:
    factors: dict[str, Any] = {"short_factor": [1.0] * 4, "long_factor": [6.0] * 4, "factor": 6.0}
    factors |= {"rope_type": "longrope", "rope_theta": 100.0, "original_max_position_embeddings": LENGTH}
    made = model(rope_parameters=factors)
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.dim() > 1:
                parameter.mul_(8)  # so that tokens depend on where others are
    return made


def test_tokens_after_that_many_are_those_of_transformers(tmp_path: Path) -> None:
    package = ep.export_transformer(stretched())
    package.save(tmp_path / "package")
    package = ep.load(tmp_path / "package")
    assert package.manifest.anew == LENGTH
    assert package.manifest.states
    for length, beams in ((5, 1), (LENGTH - 1, 3), (LENGTH, 1), (LENGTH + 1, 1)):
        prompt = torch.randint(3, 90, (2, length), generator=torch.Generator().manual_seed(length))
        asked: dict[str, Any] = {"max_new_tokens": 12, "num_beams": beams, "do_sample": False}
        wanted = stretched().generate(prompt, **asked)
        np.testing.assert_array_equal(package.generate(input_ids=prompt.numpy(), **asked), wanted.numpy())
        others = Package(package.graphs, dataclasses.replace(package.manifest, anew=0)).generate(
            input_ids=prompt.numpy(), **asked
        )
        assert np.array_equal(others, wanted.numpy()) == (length > LENGTH), "it has to make a difference here"
    with pytest.raises(ep.ConversionError, match="anew"):
        looped(package, num_beams=1, opset=None)
    with pytest.raises(ep.ConversionError, match="anew"):
        package.save(tmp_path / "other", layout="optimum")


def test_where_it_makes_no_difference_nothing_is_read_again() -> None:
    assert ep.export_transformer(model(), verify=False).manifest.anew == 0
