"""What packages generate is what transformers generates, token by token; they run on onnxruntime, without torch."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
import transformers

import entrepot as ep
from entrepot.exporters.transformers.in_graph.loop import looped
from entrepot.runtime.generation.package import Package
from entrepot.runtime.generation.settings import padded_ends
from tests.exporters.transformers.models import built, given

SAMPLE = (
    "LlamaForCausalLM",
    "MistralForCausalLM",
    "T5ForConditionalGeneration",
    "WhisperForConditionalGeneration",
    "MambaForCausalLM",
    "donut",
    "llava",
)
"""One of each kind; ``make transformer-sweep`` has them all."""

ASKED: tuple[dict[str, Any], ...] = (
    {},
    {"num_beams": 4},
    {"repetition_penalty": 1.4, "min_new_tokens": 3},
    {"num_beams": 3, "length_penalty": -0.5, "early_stopping": True},
    {"no_repeat_ngram_size": 2},
)


@pytest.fixture(scope="module", params=SAMPLE)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Any, Package]:
    """A model, and its package as it was read from a folder."""
    name: str = request.param
    model = built(name)
    samples = given(name, model, 2) if name == "llava" else None
    package = ep.export_transformer(model, samples, opset=17 if name == "LlamaForCausalLM" else None)
    assert package.report, package.report
    folder = tmp_path_factory.mktemp("packages") / name
    package.save(folder)
    return name, model, ep.load(folder)


def generated(model: Any, inputs: dict[str, torch.Tensor], **asked: Any) -> np.ndarray[Any, Any]:
    """What transformers generates, by what all models share."""
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return transformers.GenerationMixin.generate(model, **inputs, do_sample=False, **asked).numpy()


@pytest.mark.parametrize("rows", [1, 3])
def test_tokens_are_those_of_transformers(pair: tuple[str, Any, Package], rows: int) -> None:
    name, model, package = pair
    for number, asked in enumerate(ASKED):
        inputs = given(name, model, rows, seed=20 + number)
        wanted = generated(model, inputs, max_new_tokens=9, **asked)
        got = package.generate(**inputs, max_new_tokens=9, **asked)
        np.testing.assert_array_equal(got, wanted, err_msg=str(asked))


def test_rows_end_early_by_any_of_several_tokens(pair: tuple[str, Any, Package]) -> None:
    name, model, package = pair
    inputs = given(name, model, 3, seed=40)
    free = package.generate(**inputs, max_new_tokens=8, eos_token_id=[])
    ends = [int(free[0, -6]), int(free[1, -3])]
    for beams in (1, 4):
        wanted = generated(model, inputs, max_new_tokens=8, eos_token_id=ends, num_beams=beams)
        got = package.generate(**inputs, max_new_tokens=8, eos_token_id=ends, num_beams=beams)
        np.testing.assert_array_equal(got, wanted)


def test_a_prompt_may_come_in_pieces(pair: tuple[str, Any, Package]) -> None:
    name, model, package = pair
    inputs = given(name, model, 1, seed=50)
    whole = package.generate(**inputs, max_new_tokens=3, eos_token_id=[], forced_eos_token_id=[])
    decoding = package.start(**inputs)
    tokens = whole[:, -3:]
    for token in tokens.T:
        assert decoding.logits.argmax(1) == token
        decoding.step(token)


def test_weights_are_stored_once(pair: tuple[str, Any, Package]) -> None:
    _, model, package = pair
    folder = Path(next(iter(package.graphs.values())).path or "").parent
    parameters = sum(parameter.nbytes for parameter in {id(each): each for each in model.parameters()}.values())
    buffers = sum(buffer.nbytes for buffer in model.buffers())
    assert (folder / "model.data").stat().st_size <= 1.02 * (parameters + buffers) + 4096 * 2 * len(
        list(model.parameters())
    )


@pytest.mark.parametrize(("beams", "opset"), [(1, 20), (4, 17)])
def test_one_graph_generates_the_same(pair: tuple[str, Any, Package], beams: int, opset: int, tmp_path: Path) -> None:
    name, model, package = pair
    whole = looped(package, num_beams=beams, opset=opset)
    whole.graphs["loop"].save(tmp_path / "whole.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "whole.onnx", providers=["CPUExecutionProvider"])
    for rows in (1, 3):
        inputs = given(name, model, rows, seed=60)
        free = package.generate(**inputs, max_new_tokens=8, eos_token_id=[])
        ends = [int(free[0, -6]), int(free[-1, -3])]
        wanted = generated(model, inputs, max_new_tokens=8, eos_token_id=ends, num_beams=beams)
        said = {"max_new_tokens": np.array(8), "eos_token_id": padded_ends(ends)}
        feeds = {name: value.numpy() for name, value in inputs.items()} | said
        np.testing.assert_array_equal(session.run(None, feeds)[0], wanted)
        ours = whole.using("cpu").generate(**inputs, max_new_tokens=8, eos_token_id=ends)
        np.testing.assert_array_equal(ours, wanted)
