"""Inputs that are made where a caller gives none: every kind of model is called with what it asks for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import transformers
from torch import nn

import entrepot as ep
from entrepot.exporters.transformers.samples import sample_of
from entrepot.exporters.transformers.signature import roles_of
from tests.export_cases.generating import BART, TEXT

SMALL = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
PICTURES = SMALL | {"image_size": 20, "patch_size": 10}


def clip() -> Any:
    text = SMALL | {"vocab_size": 50, "max_position_embeddings": 16, "eos_token_id": 2}
    config = transformers.CLIPConfig(text_config=text, vision_config=PICTURES, projection_dim=8)
    return transformers.CLIPModel(config).eval()


class Wrapped(nn.Module):
    """A part that sees, in a family whose whole is given texts: its main input is called as the whole's is."""

    main_input_name = "input_ids"

    def __init__(self) -> None:
        super().__init__()
        self.config = transformers.ViTConfig(**PICTURES)
        self.see = nn.Conv2d(3, 2, 10)

    def forward(self, pixel_values: torch.Tensor, patch_attention_mask: Any = None) -> torch.Tensor:
        return self.see(pixel_values)


def choices() -> Any:
    return transformers.BertForMultipleChoice(transformers.BertConfig(**TEXT)).eval()


def ended() -> Any:
    return transformers.BartForSequenceClassification(transformers.BartConfig(**BART)).eval()


def films() -> Any:
    return transformers.TimesformerForVideoClassification(transformers.TimesformerConfig(**PICTURES, num_frames=3))


def series() -> Any:
    config = transformers.PatchTSTConfig(context_length=24, num_input_channels=3, patch_length=4, d_model=8, ffn_dim=8)
    return transformers.PatchTSTForRegression(config).eval()


def spectra() -> Any:
    config = transformers.ASTConfig(**SMALL, max_length=40, num_mel_bins=20)
    return transformers.ASTForAudioClassification(config).eval()


@pytest.mark.parametrize(
    ("build", "shapes"),
    [
        (clip, {"input_ids": (2, 7), "attention_mask": (2, 7), "pixel_values": (2, 3, 20, 20)}),
        (Wrapped, {"pixel_values": (2, 3, 20, 20)}),
        (choices, {"input_ids": (2, 3, 7), "attention_mask": (2, 3, 7)}),
        (ended, {"input_ids": (2, 7), "attention_mask": (2, 7)}),
        (films, {"pixel_values": (2, 3, 3, 20, 20)}),
        (series, {"past_values": (2, 24, 3)}),
        (spectra, {"input_values": (2, 40, 20)}),
    ],
)
def test_a_model_is_given_what_it_asks_for(build: Any, shapes: dict[str, tuple[int, ...]]) -> None:
    torch.manual_seed(0)
    model = build()
    made = sample_of(model, roles_of(model, None), None, generates=False)
    assert {name: tuple(value.shape) for name, value in made.items()} == shapes


def test_a_sample_is_taken_as_the_model_takes_it_without_tokens_for_its_decoder() -> None:
    torch.manual_seed(0)
    model = ended()
    given = {"input_ids": torch.tensor([[5, 6, 7, 2], [8, 9, 10, 2]]), "attention_mask": torch.ones(2, 4).long()}
    assert sample_of(model, roles_of(model, None), given, generates=False) == given


def test_towers_are_exported_with_nothing_but_themselves() -> None:
    torch.manual_seed(0)
    model = clip()
    package = ep.export_transformer(model)
    assert package.report
    given = {"input_ids": torch.randint(3, 50, (3, 5)), "pixel_values": torch.randn(2, 3, 20, 20)}
    given["attention_mask"] = torch.ones_like(given["input_ids"])
    with torch.no_grad():
        wanted = model(**given).logits_per_text.numpy()
    got = package.forward(**{name: value.numpy() for name, value in given.items()})["logits_per_text"]
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


class Captioner(nn.Module):
    """A decoder that may be shown something."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.see, self.head = nn.Embedding(20, 8), nn.Linear(6, 8), nn.Linear(8, 20)

    def forward(self, input_ids: Any, cache: Any = None, pixel_values: Any = None) -> Any:
        new = self.embedding(input_ids)
        if pixel_values is not None:
            new = torch.cat([new[:, :1] + self.see(pixel_values).mean(1, keepdim=True), new[:, 1:]], 1)
        whole = new if cache is None else torch.cat([cache, new], 1)
        return self.head(whole.cumsum(1)[:, whole.shape[1] - new.shape[1] :]), whole


def test_a_package_made_without_pictures_says_so() -> None:
    torch.manual_seed(0)
    model = Captioner().eval()
    assert any("made without pixel_values" in note for note in ep.export_transformer(model).notes)
    given = {"input_ids": torch.randint(0, 20, (2, 5)), "pixel_values": torch.randn(2, 3, 6)}
    assert not any("made without" in note for note in ep.export_transformer(model, given).notes)
