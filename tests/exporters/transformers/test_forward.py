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
