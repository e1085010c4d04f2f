"""What is done to scores before a token is chosen, beside the processors of transformers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import transformers

import entrepot as ep
from entrepot.runtime.generation.scores import Scorer
from entrepot.runtime.generation.settings import Settings
from entrepot.runtime.generation.warping import warped
from tests.export_cases.generating import built, given

WIDE = 120
"""More tokens than a share of the entropy is about."""


def scores_and_tokens(*, forbidden: bool = False) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(4, WIDE)).astype(np.float32) * 3
    if forbidden:
        scores[:, ::3] = -np.inf
    return scores, rng.integers(0, 6, (4, 9))


def theirs(scores: np.ndarray[Any, Any], tokens: np.ndarray[Any, Any], **asked: Any) -> np.ndarray[Any, Any]:
    """Everything that ``generate`` would do to scores."""
    config = transformers.GenerationConfig(top_k=0, do_sample=True, **asked)
    config._eos_token_tensor = torch.tensor([2])
    model = built("GPT2LMHeadModel")
    prompts = torch.from_numpy(tokens[:, :4])
    processors = model._get_logits_processor(
        config, input_ids_seq_length=4, encoder_input_ids=prompts, prefix_allowed_tokens_fn=None
    )
    return processors(torch.from_numpy(tokens), torch.from_numpy(scores.copy())).numpy()


@pytest.mark.parametrize(
    "asked",
    [
        {"min_p": 0.2},
        {"typical_p": 0.3},
        {"typical_p": 0.9, "temperature": 2.0},
        {"epsilon_cutoff": 0.03},
        {"eta_cutoff": 0.05},
        {"top_h": 0.4},
        {"top_h": 0.7, "top_p": 0.8, "min_p": 0.01},
        {"encoder_repetition_penalty": 1.4},
        {"encoder_no_repeat_ngram_size": 2},
        {"encoder_no_repeat_ngram_size": 1},
        {"bad_words_ids": [[4], [2], [1, 7], [0, 5, 3, 8], [5] * 12]},
        {"sequence_bias": [[[4], -3.0], [[3], 2.0], [[4, 9], 5.0]]},
        {"exponential_decay_length_penalty": (2, 1.5)},
        {"exponential_decay_length_penalty": (7, 1.5)},
    ],
    ids=str,
)
@pytest.mark.parametrize("forbidden", [False, True])
def test_scores_become_what_transformers_makes_of_them(asked: dict[str, Any], forbidden: bool) -> None:
    scores, tokens = scores_and_tokens(forbidden=forbidden)
    settings = Settings.of({"top_k": 0, "eos_token_id": 2, **asked})
    adjusted = Scorer(settings, 4)(scores.copy(), tokens, np.zeros(4, np.int64), tokens[:, :4])
    np.testing.assert_allclose(warped(adjusted, settings), theirs(scores, tokens, **asked), rtol=1e-5)


@pytest.mark.parametrize("name", ["GPT2LMHeadModel", "MarianMTModel"])
def test_words_that_a_configuration_forbids_are_not_generated(name: str) -> None:
    model = built(name)
    inputs = given(name, model, 3)
    arrays = {each: value.numpy() for each, value in inputs.items()}
    asked: dict[str, Any] = {"max_new_tokens": 6, "do_sample": False}
    free = model.generate(**inputs, **asked)
    model.generation_config.bad_words_ids = [[int(free[0, -3])], free[1, -2:].tolist()]
    package = ep.export_transformer(model, verify=False)
    for beams in (1, 3):
        wanted = model.generate(**inputs, **asked, num_beams=beams)
        assert not torch.equal(wanted, free)
        np.testing.assert_array_equal(package.generate(**arrays, **asked, num_beams=beams), wanted)
    several = {"num_beams": 3, "num_return_sequences": 2, "renormalize_logits": True}
    wanted = model.generate(**inputs, **asked, **several)
    np.testing.assert_array_equal(package.generate(**arrays, **asked, **several), wanted)


@pytest.mark.parametrize(
    ("name", "value"),
    [("guidance_scale", 1.5), ("penalty_alpha", 0.6), ("dola_layers", "high"), ("stop_strings", ["end"])],
)
def test_what_a_configuration_asks_for_and_nobody_does_is_refused_by_name(name: str, value: Any) -> None:
    model = built("GPT2LMHeadModel")
    setattr(model.generation_config, name, value)
    with pytest.raises(ep.ConversionError, match=name):
        ep.export_transformer(model)


def test_what_changes_no_token_is_no_hindrance() -> None:
    model = built("GPT2LMHeadModel")
    harmless = {
        "guidance_scale": 1,
        "num_beam_groups": 1,
        "prompt_lookup_num_tokens": 3,
        "cache_implementation": "dynamic",
    }
    for name, value in harmless.items():
        setattr(model.generation_config, name, value)
    assert not ep.export_transformer(model, verify=False).notes
