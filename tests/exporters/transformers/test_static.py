"""Caches of a fixed size: steps write into them, no size changes from step to step, and the tokens are the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

import entrepot as ep
from entrepot.exporters.transformers.in_graph.loop import looped
from entrepot.runtime.generation.package import Package
from tests.export_cases.generating import built, given
from tests.exporters.transformers.test_tokens import generated

ROOM = 24
KINDS = ("MistralForCausalLM", "T5ForConditionalGeneration", "llava")
"""One with a window, one with an encoder, one whose prompt has a graph of its own."""


@pytest.fixture(scope="module", params=KINDS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Any, Package]:
    """A model, and its package as it was read from a folder."""
    name: str = request.param
    model = built(name)
    samples = given(name, model, 2) if name == "llava" else None
    opset = 24 if name == "MistralForCausalLM" else None
    package = ep.export_transformer(model, samples, cache="static", max_length=ROOM, opset=opset)
    assert package.report, package.report
    folder = tmp_path_factory.mktemp("static") / name
    package.save(folder)
    return name, model, ep.load(folder)


def test_tokens_are_those_of_transformers(pair: tuple[str, Any, Package]) -> None:
    name, model, package = pair
    inputs = given(name, model, 3, seed=20)
    for asked in ({}, {"num_beams": 4}, {"repetition_penalty": 1.4}):
        wanted = generated(model, inputs, max_new_tokens=9, **asked)
        np.testing.assert_array_equal(package.generate(**inputs, max_new_tokens=9, **asked), wanted)


def test_no_size_but_the_batch_and_new_tokens_varies(pair: tuple[str, Any, Package]) -> None:
    name, _, package = pair
    manifest, decoder = package.manifest, package.graphs["decoder"]
    specs = {spec.name: spec.shape for spec in (*decoder.inputs, *decoder.outputs)}
    written = [state for state in manifest.states if ROOM in state.shape]
    assert len(written) == len(manifest.states) > 0
    for state in written:
        assert specs[state.past] == specs[state.present] == ("batch", *state.shape[1:])
    writers = {node.op_type for node in decoder.ir.graph.all_nodes() if "Scatter" in node.op_type}
    assert writers == ({"TensorScatter"} if name == "MistralForCausalLM" else {"ScatterND"})


def test_what_is_behind_the_tokens_does_not_matter(pair: tuple[str, Any, Package]) -> None:
    name, model, package = pair
    inputs = given(name, model, 2, seed=30)
    clean, dirty = package.start(**inputs), package.start(**inputs)
    length = dirty.tokens.shape[1]
    for state in package.manifest.states:
        dirty._state[state.past] = buffer = np.array(dirty._state[state.past])
        buffer[..., length:, :] = 7
    more = np.full((2, 1), 11)
    np.testing.assert_allclose(dirty.step(more), clean.step(more), rtol=1e-5, atol=1e-6)


def test_more_tokens_than_there_is_room_for_are_refused(pair: tuple[str, Any, Package]) -> None:
    name, model, package = pair
    inputs = given(name, model, 2, seed=40)
    with pytest.raises(ep.InputError, match=f"{ROOM + 1} tokens, the cache has room for {ROOM}"):
        package.generate(**inputs, max_new_tokens=ROOM + 2, eos_token_id=[])


@pytest.mark.parametrize("beams", [1, 3])
def test_a_loop_in_the_graph_writes_in_place(pair: tuple[str, Any, Package], beams: int, tmp_path: Path) -> None:
    name, model, package = pair
    inputs = given(name, model, 2, seed=50)
    whole = looped(package, num_beams=beams, opset=None)
    whole.graphs["loop"].save(tmp_path / "loop.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "loop.onnx", providers=["CPUExecutionProvider"])
    taken = {each.name for each in session.get_inputs()}
    feeds = {key: value.numpy() for key, value in inputs.items() if key in taken} | {"max_new_tokens": np.array(8)}
    wanted = package.generate(**inputs, num_beams=beams, max_new_tokens=8)
    np.testing.assert_array_equal(session.run(["sequences"], feeds)[0], wanted)


class Concatenating(nn.Module):
    """A cache that nobody can write into: a tuple."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(30, 8), nn.Linear(8, 30)

    def forward(self, input_ids: torch.Tensor, past: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
        new = self.embed(input_ids)
        whole = new if past is None else torch.cat([past, new], 1)
        seen = (whole.cumsum(1) / torch.arange(1, whole.shape[1] + 1)[:, None])[:, -new.shape[1] :]
        return self.head(seen), whole


def test_a_cache_that_cannot_be_written_into_is_refused() -> None:
    with pytest.raises(ep.ConversionError, match="with a cache of a fixed size it gives other scores"):
        ep.export_transformer(Concatenating(), cache="static")


def test_layouts_of_others_have_no_place_for_it(pair: tuple[str, Any, Package], tmp_path: Path) -> None:
    for layout in ("optimum", "genai"):
        with pytest.raises(ep.ConversionError):
            pair[2].save(tmp_path / layout, layout=layout)
