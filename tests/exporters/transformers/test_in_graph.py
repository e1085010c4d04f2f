"""Loops in a graph on decoders whose scores are known, run by onnxruntime, beside the loop on the host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

import entrepot as ep
from entrepot.exporters.transformers.in_graph.loop import looped
from entrepot.runtime.generation.package import Package
from tests.runtime.generation.test_generation import VOCABULARY, chain

RNG = np.random.default_rng(0)
SCORES = RNG.normal(size=(VOCABULARY, VOCABULARY)) * 2
ROWS = RNG.integers(0, VOCABULARY, (200, 2))


def session(package: Package, path: Path) -> onnxruntime.InferenceSession:
    package.graphs["loop"].save(path)
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


@pytest.fixture(scope="module", params=[20, 17])
def drawing(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> onnxruntime.InferenceSession:
    whole = looped(chain(SCORES), num_beams=1, opset=request.param, penalty=True, sample=True)
    return session(whole, tmp_path_factory.mktemp("drawing") / "whole.onnx")


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"seed": 12345678901234},
        {"temperature": 0.5},
        {"top_k": 2},
        {"top_k": 0, "top_p": 0.6},
        {"top_k": 3, "top_p": 0.7, "temperature": 1.5, "repetition_penalty": 1.3},
        {"top_p": 0.0},
    ],
)
def test_samples_are_those_of_the_host(drawing: onnxruntime.InferenceSession, asked: dict[str, Any]) -> None:
    asked = {"seed": 7, **asked}
    wanted = chain(SCORES).generate(input_ids=ROWS, max_new_tokens=6, do_sample=True, **asked)
    types = {"temperature": np.float32, "top_p": np.float32, "repetition_penalty": np.float32}
    feeds = {name: np.array(value, types.get(name, np.int64)) for name, value in asked.items()}
    (got,) = drawing.run(None, {"input_ids": ROWS, "max_new_tokens": np.array(6), **feeds})
    np.testing.assert_array_equal(got, wanted)


def test_what_ends_rows_fills_them_where_nothing_else_is_said() -> None:
    asked = {"input_ids": ROWS, "max_new_tokens": 6, "eos_token_id": [3, 4]}
    whole = looped(chain(SCORES), num_beams=1, opset=None).using("cpu")
    assert np.array_equal(whole.generate(**asked), chain(SCORES).generate(**asked))


def test_samples_in_a_graph_follow_the_probabilities(drawing: onnxruntime.InferenceSession) -> None:
    rows = np.zeros((4000, 1), np.int64)
    (drawn,) = drawing.run(None, {"input_ids": rows, "max_new_tokens": np.array(1), "seed": np.array(3)})
    wanted = np.exp(SCORES[0]) / np.exp(SCORES[0]).sum()
    counts = np.bincount(drawn[:, 1], minlength=VOCABULARY) / len(rows)
    assert np.abs(counts - wanted).max() < 5 * np.sqrt(0.25 / len(rows))


def test_a_package_that_draws_takes_the_settings_of_generate() -> None:
    whole = looped(chain(SCORES, do_sample=True), num_beams=1, opset=None).using("cpu")
    once = whole.generate(input_ids=ROWS, max_new_tokens=4, seed=5, top_k=3)
    assert np.array_equal(once, whole.generate(input_ids=ROWS, max_new_tokens=4, seed=5, top_k=3))
    assert not np.array_equal(once, whole.generate(input_ids=ROWS, max_new_tokens=4, top_k=3))
    assert np.array_equal(
        once, chain(SCORES, do_sample=True).generate(input_ids=ROWS, max_new_tokens=4, seed=5, top_k=3)
    )
    with pytest.raises(ep.InputError, match="do_sample"):
        whole.generate(input_ids=ROWS, do_sample=False)
    with pytest.raises(ep.ConversionError, match="drawn"):
        looped(chain(SCORES), num_beams=2, opset=None, sample=True)


@pytest.mark.parametrize("beams", [1, 3])
def test_a_penalty_and_a_least_length_are_heeded(beams: int, tmp_path: Path) -> None:
    package = chain(SCORES)
    whole = session(looped(package, num_beams=beams, opset=17, penalty=True), tmp_path / "whole.onnx")
    asked = {"repetition_penalty": 3.0, "min_new_tokens": 3}
    wanted = package.generate(input_ids=ROWS, max_new_tokens=5, num_beams=beams, eos_token_id=4, **asked)
    feeds = {"repetition_penalty": np.array(3, np.float32), "min_new_tokens": np.array(3)}
    feeds |= {"eos_token_id": np.array([4] + [-1] * 7), "pad_token_id": np.array(4)}
    (got,) = whole.run(None, {"input_ids": ROWS, "max_new_tokens": np.array(5), **feeds})
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(
    "asked",
    [
        {"bad_words_ids": [[1]]},
        {"bad_words_ids": [[1, 1], [2], [4, 1, 4], [1] * 9, [1, 4, 1, 0]]},
        {"no_repeat_ngram_size": 1},
        {"no_repeat_ngram_size": 2, "bad_words_ids": [[1, 4]]},
        {"no_repeat_ngram_size": 3},
        {"no_repeat_ngram_size": 5},
    ],
    ids=str,
)
@pytest.mark.parametrize("beams", [1, 3])
def test_words_that_may_not_occur_do_not(beams: int, asked: dict[str, Any], tmp_path: Path) -> None:
    package = chain(SCORES, eos_token_id=2, pad_token_id=0, **asked)
    whole = session(looped(package, num_beams=beams, opset=17), tmp_path / "whole.onnx")
    new = 3 if asked.get("no_repeat_ngram_size") == 1 else 6  # of which there are five tokens to choose from
    wanted = package.generate(input_ids=ROWS, max_new_tokens=new, num_beams=beams)
    assert not np.array_equal(
        wanted, chain(SCORES, eos_token_id=2, pad_token_id=0).generate(input_ids=ROWS, max_new_tokens=new)
    )
    (got,) = whole.run(None, {"input_ids": ROWS, "max_new_tokens": np.array(new)})
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(
    ("name", "value"), [("sequence_bias", [[[1], 2.0]]), ("exponential_decay_length_penalty", (1, 2.0)), ("min_p", 0.1)]
)
def test_a_setting_that_no_loop_heeds_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(ep.ConversionError, match=name):
        looped(chain(SCORES, **{name: value}), num_beams=1, opset=None, sample=True)
