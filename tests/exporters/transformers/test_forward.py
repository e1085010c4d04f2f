"""Models that do not generate: what they are given, and what they return, is theirs as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

import entrepot as ep
from tests.export_cases.generating import TEXT


class Sounds(nn.Module):
    """Something that generates by the word of its author, and is given no tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(6, 4)

    def forward(self, input_features: torch.Tensor, attention_mask: torch.Tensor, cache: Any = None) -> torch.Tensor:
        return self.out(input_features * attention_mask[..., None])


def test_what_is_given_no_tokens_does_not_generate() -> None:
    given = {"input_features": torch.randn(2, 5, 6), "attention_mask": torch.ones(2, 5)}
    model = Sounds().eval()
    package = ep.export_transformer(model, given)
    assert not package.generates
    got = package.forward(**{name: value.numpy() for name, value in given.items()})
    np.testing.assert_allclose(next(iter(got.values())), model(**given).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_a_window_that_is_returned_is_cut_as_the_model_cuts_it() -> None:
    import transformers

    config = transformers.MistralConfig(**TEXT | {"sliding_window": 4})
    model = transformers.MistralModel(config).eval()
    ids = torch.arange(8, 22).reshape(2, 7)
    package = ep.export_transformer(model, {"input_ids": ids}, task="forward")
    with torch.no_grad():
        wanted = model(ids).past_key_values.layers[0].keys.numpy()
    assert wanted.shape[2] < 7
    got = package.forward(input_ids=ids.numpy())
    np.testing.assert_allclose(got["past_key_values.layers.0.keys"], wanted, rtol=1e-5, atol=1e-6)


class Windows(nn.Module):
    """Cuts pictures into windows, and pads those that are not made of whole ones."""

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        height, width = pixel_values.shape[2:]
        if width % 4 != 0:
            pixel_values = nn.functional.pad(pixel_values, (0, 4 - width % 4))
        if height % 4 != 0:
            pixel_values = nn.functional.pad(pixel_values, (0, 0, 0, 4 - height % 4))
        return pixel_values.unfold(2, 4, 4).unfold(3, 4, 4).amax((-1, -2)).flatten(1).sum(1)


def test_no_other_way_is_tried_for_the_sides_of_pictures() -> None:
    told: list[str] = []
    pictures = torch.randn(2, 3, 8, 12)
    package = ep.export_transformer(Windows(), {"pixel_values": pictures}, task="forward", progress=told.append)
    assert not any("another way" in str(line) for line in told)
    assert package.inputs["pixel_values"].shape[2:] == (8, 12)
    more = torch.randn(5, 3, 8, 12)
    got = next(iter(package.forward(pixel_values=more.numpy()).values()))
    np.testing.assert_allclose(got, Windows()(more).numpy(), rtol=1e-5)
