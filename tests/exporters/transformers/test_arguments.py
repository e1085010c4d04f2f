"""What ``export_transformer`` is asked for is done, or refused before anything is exported."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import entrepot as ep
from tests.export_cases.generating import built, given


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


@pytest.mark.parametrize("asked", [{"loop": "in_graph"}, {"cache": "static"}])
def test_what_only_steps_have_is_refused_where_there_are_none(asked: dict[str, Any]) -> None:
    (name,) = asked
    with pytest.raises(ep.ConversionError, match=f"does not generate, so there is no {name}"):
        ep.export_transformer(built("BertForSequenceClassification"), **asked)


def test_a_model_that_scores_no_tokens_cannot_generate() -> None:
    with pytest.raises(ep.ConversionError, match="no scores of tokens"):
        ep.export_transformer(built("BertForSequenceClassification"), task="generate")


def test_a_place_that_cannot_be_written_is_refused_before_the_export(tmp_path: Any) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(ep.InputError, match="exists and is no package"):
        ep.export_transformer(torch.nn.Bilinear(2, 2, 2), path=tmp_path / "taken")


def test_a_sample_of_one_row_and_one_token_is_enough() -> None:
    model = built("GPT2LMHeadModel")
    package = ep.export_transformer(model, {"input_ids": torch.tensor([[7]])})
    prompts = torch.tensor([[0, 5, 6], [9, 8, 7]])
    mask = torch.tensor([[0, 1, 1], [1, 1, 1]])
    wanted = model.generate(prompts, attention_mask=mask, max_new_tokens=4, do_sample=False)
    got = package.generate(input_ids=prompts, attention_mask=mask, max_new_tokens=4)
    assert got.tolist() == wanted.tolist()


def test_one_picture_is_enough_of_a_sample() -> None:
    model = built("trocr")
    package = ep.export_transformer(model, given("trocr", model, 1), verify=False)
    pictures = given("trocr", model, 3, seed=1)
    wanted = model.generate(**pictures, max_new_tokens=4, do_sample=False)
    assert package.generate(**pictures, max_new_tokens=4).tolist() == wanted.tolist()


def test_padding_of_a_text_is_left_out_though_the_sample_has_no_mask() -> None:
    model = built("BartForConditionalGeneration")
    package = ep.export_transformer(model, {"input_ids": torch.tensor([[7, 8, 9, 10]])}, verify=False)
    padding = model.config.pad_token_id
    texts = torch.tensor([[7, 8, 9, padding, padding], [9, 8, 7, 6, 5]])
    wanted = model.generate(texts, max_new_tokens=5, do_sample=False)
    assert package.generate(input_ids=texts, max_new_tokens=5).tolist() == wanted.tolist()
    alone = model.generate(texts[:1, :3], max_new_tokens=5, do_sample=False)
    assert package.generate(input_ids=texts[:1, :3], max_new_tokens=5).tolist() == alone.tolist()
