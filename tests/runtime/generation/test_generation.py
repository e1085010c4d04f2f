"""The loops on packages whose scores are known: a table that says what follows which token."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import entrepot as ep
from entrepot.runtime.generation.manifest import Manifest
from entrepot.runtime.generation.package import Package
from entrepot.runtime.generation.settings import Settings

VOCABULARY = 5


def chain(table: np.ndarray[Any, Any], **settings: Any) -> Package:
    """A decoder for which the last token decides about the next one."""
    proto = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]>
    chain (int64[batch, sequence] input_ids) => (float[batch, sequence, tokens] logits) {
        logits = Gather<axis = 0>(table, input_ids)
    }""")
    proto.graph.initializer.append(onnx.numpy_helper.from_array(table.astype(np.float32), "table"))
    return Package(
        {"decoder": ep.load(proto)}, Manifest(kind="decoder", settings=Settings.of(settings)), providers="cpu"
    )


def successor() -> np.ndarray[Any, Any]:
    """Each token is followed by the next one."""
    return np.eye(VOCABULARY)[(np.arange(VOCABULARY) + 1) % VOCABULARY] * 9


def test_the_most_likely_token_follows_and_rows_end_apart() -> None:
    package = chain(successor(), eos_token_id=4, pad_token_id=0)
    seen: list[Any] = []
    result = package.generate(input_ids=[[1, 2], [2, 3], [0, 0]], max_new_tokens=4, streamer=seen.append)
    assert result.tolist() == [[1, 2, 3, 4, 0, 0], [2, 3, 4, 0, 0, 0], [0, 0, 1, 2, 3, 4]]
    assert np.column_stack(seen).tolist() == result[:, 2:].tolist()


def test_a_row_stops_when_the_caller_says_so() -> None:
    package = chain(successor(), pad_token_id=0)
    result = package.generate(input_ids=[[0], [2]], max_new_tokens=4, stopping=lambda rows: rows[:, -1] == 3)
    assert result.tolist() == [[0, 1, 2, 3], [2, 3, 0, 0]]


def test_new_tokens_can_be_had_alone() -> None:
    assert chain(successor()).generate(input_ids=[[0]], max_new_tokens=2, return_new_only=True).tolist() == [[1, 2]]


@pytest.mark.parametrize("seed", range(5))
def test_with_beams_for_everything_the_best_sequence_is_found(seed: int) -> None:
    scores = np.random.default_rng(seed).normal(size=(VOCABULARY, VOCABULARY)) * 2
    logs = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    every = itertools.product(range(VOCABULARY), repeat=3)
    best = max(every, key=lambda row: sum(logs[a, b] for a, b in itertools.pairwise((2, *row))))
    got = chain(scores).generate(input_ids=[[2]], max_new_tokens=3, num_beams=VOCABULARY**2)
    assert got.tolist() == [[2, *best]]


def test_samples_follow_the_probabilities_and_the_seed() -> None:
    scores = np.log(np.array([[0.5, 0.25, 0.15, 0.07, 0.03]] * VOCABULARY))
    package = chain(scores)
    rows = np.zeros((4000, 1), np.int64)
    drawn = package.generate(input_ids=rows, max_new_tokens=1, do_sample=True, seed=1)[:, 1]
    counts = np.bincount(drawn, minlength=VOCABULARY) / len(rows)
    assert np.abs(counts - np.exp(scores[0])).max() < 5 * np.sqrt(0.25 / len(rows))
    again = package.generate(input_ids=rows, max_new_tokens=1, do_sample=True, seed=1)[:, 1]
    assert np.array_equal(drawn, again)


@pytest.mark.parametrize(
    ("asked", "allowed"),
    [
        ({"top_k": 2}, {0, 1}),
        ({"top_p": 0.6}, {0, 1}),
        ({"temperature": 0.01}, {0}),
        ({"suppress_tokens": [0, 1]}, {2, 3, 4}),
    ],
)
def test_samples_keep_to_the_likely_tokens(asked: dict[str, Any], allowed: set[int]) -> None:
    package = chain(np.log(np.array([[0.5, 0.25, 0.15, 0.07, 0.03]] * VOCABULARY)))
    drawn = package.generate(input_ids=np.zeros((500, 1), np.int64), max_new_tokens=1, do_sample=True, seed=3, **asked)
    assert set(drawn[:, 1].tolist()) == allowed


def test_decoding_goes_step_by_step_with_rows_as_they_are_chosen() -> None:
    decoding = chain(successor()).start(input_ids=[[0], [3]])
    assert decoding.logits.argmax(1).tolist() == [1, 4]
    decoding.select([1, 1, 0])
    assert decoding.step([4, 2, 1]).argmax(1).tolist() == [0, 3, 2]
    assert decoding.tokens.tolist() == [[3, 4], [3, 2], [0, 1]]


@pytest.mark.parametrize("provider", ["cpu", "onnxruntime"])
def test_a_step_that_fails_leaves_the_rows_as_they_were(provider: str) -> None:
    decoding = chain(successor()).using(provider).start(input_ids=[[0], [3]])
    with pytest.raises(ep.EntrepotError):
        decoding.step([1, VOCABULARY])
    assert decoding.tokens.tolist() == [[0], [3]]
    assert decoding.step([1, 4]).argmax(1).tolist() == [2, 0]
    assert decoding.mask.tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"max_new_tokens": -1}, "max_new_tokens"),
        ({"num_beams": 0}, "num_beams"),
        ({"temperature": 0}, "temperature"),
        ({"top_p": 2}, "top_p"),
        ({"beams": 2}, "'beams'"),
        ({"streamer": print, "num_beams": 2}, "streamed"),
        ({"stopping": 3}, "stopping"),
        ({"attention_mask": [[1]]}, "attention_mask"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ep.InputError, match=said):
        chain(successor()).generate(input_ids=[[1]], **given)


def test_a_package_survives_its_folder(tmp_path: Path) -> None:
    package = chain(successor(), eos_token_id=4, pad_token_id=0)
    package.save(tmp_path / "package")
    again = ep.load(tmp_path / "package").using("cpu")
    assert again.manifest == package.manifest
    assert again.generate(input_ids=[[1]], max_new_tokens=5).tolist() == [[1, 2, 3, 4]]
    again.save(tmp_path / "package")  # in place of what it reads
    assert ep.load(tmp_path / "package").using("cpu").generate(input_ids=[[1]], max_new_tokens=1).tolist() == [[1, 2]]
    assert [path.name for path in tmp_path.iterdir()] == ["package"]


def test_beams_without_enough_tokens_to_choose_from_are_refused() -> None:
    package = chain(np.zeros((1, 1), np.float32))
    assert package.generate(input_ids=[[0]], max_new_tokens=2).tolist() == [[0, 0, 0]]
    with pytest.raises(ep.InputError, match="4 beams have 4 continuations, of which a search looks at 8"):
        package.generate(input_ids=[[0]], max_new_tokens=2, num_beams=4)


def test_other_folders_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(ep.InputError, match="no package"):
        chain(successor()).save(tmp_path)
    with pytest.raises(ep.MissingFileError):
        chain(successor()).save(tmp_path / "nowhere" / "package")


@pytest.mark.parametrize(
    "change", [{"format": 99}, {"states": 3}, {"graphs": ["../decoder"]}, {"settings": {"nothing": 1}}, {"graphs": 1}]
)
def test_a_damaged_description_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    chain(successor()).save(tmp_path / "package")
    file = tmp_path / "package" / "entrepot.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises((ep.ModelFormatError, ep.InputError)):
        ep.load(tmp_path / "package")


def test_a_package_is_given_other_threads_and_keeps_its_provider() -> None:
    package = chain(successor()).using(threads=1)
    assert package.session("decoder").threads == 1
    assert package.session("decoder").providers == ("cpu",)
    assert package.generate(input_ids=[[0]], max_new_tokens=2).tolist() == [[0, 1, 2]]
    with pytest.raises(ep.InputError, match="threads"):
        package.using(threads=0)


@pytest.mark.parametrize(
    "asked",
    [
        {"bad_words_ids": [[1], [2, 3]]},
        {"sequence_bias": {(1,): 2.0, (2, 3): -1}},
        {"exponential_decay_length_penalty": (3, 1.1)},
        {"min_p": 0.1, "typical_p": 0.5, "num_beams": 3, "num_return_sequences": 2},
    ],
    ids=str,
)
def test_settings_are_the_same_from_a_file(asked: dict[str, Any]) -> None:
    settings = Settings.of(asked)
    assert settings != Settings()
    assert Settings.of(json.loads(json.dumps(settings.as_dict()))) == settings


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"forced_bos_token_id": 3, "suppress_tokens": [2, 3]}, "no token is left"),
        ({"num_return_sequences": 2}, "num_return_sequences"),
        ({"num_return_sequences": 3, "num_beams": 2}, "num_return_sequences"),
        ({"bad_words_ids": [1]}, "bad_words_ids"),
        ({"bad_words_ids": [[]]}, "bad_words_ids"),
        ({"bad_words_ids": "ab"}, "bad_words_ids"),
        ({"bad_words_ids": [[5]]}, "token 5"),
        ({"bad_words_ids": [[-1]]}, "bad_words_ids"),
        ({"sequence_bias": [[1, 2, 3]]}, "sequence_bias"),
        ({"exponential_decay_length_penalty": 3}, "exponential_decay_length_penalty"),
        ({"exponential_decay_length_penalty": [1]}, "exponential_decay_length_penalty"),
    ],
    ids=str,
)
def test_settings_that_cannot_be_are_refused(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(ep.InputError, match=said):
        chain(successor()).generate(input_ids=[[1]], max_new_tokens=2, **asked)


def test_several_samples_of_each_prompt_are_rows_beside_each_other() -> None:
    package = chain(np.zeros((VOCABULARY, VOCABULARY)))
    found = package.generate(input_ids=[[0], [1]], max_new_tokens=9, do_sample=True, num_return_sequences=3, seed=1)
    assert found[:, 0].tolist() == [0, 0, 0, 1, 1, 1]
    assert len({tuple(row[1:]) for row in found.tolist()}) == len(found)
