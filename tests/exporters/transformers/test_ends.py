"""Sizes that end where a model takes another path: packages state where, instead of fixing the size."""

from __future__ import annotations

from typing import Any

import torch

import entrepot as ep


class Table(torch.nn.Module):
    """A decoder whose table of places is made anew for what is longer than it."""

    def __init__(self, places: int) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(20, 8)
        self.head = torch.nn.Linear(8, 20)
        self.register_buffer("places", self.table(places))

    def table(self, count: int) -> torch.Tensor:
        """A vector for each place."""
        return torch.arange(count * 8.0).reshape(count, 8).sin()

    def forward(self, input_ids: Any, cache: Any = None) -> Any:
        """Scores, and the embeddings of all tokens so far."""
        before = 0 if cache is None else cache.shape[1]
        places: Any = self.places
        if before + input_ids.shape[1] > places.shape[0]:
            places = self.table(before + input_ids.shape[1])
        new = self.embedding(input_ids) + places[before : before + input_ids.shape[1]]
        whole = new if cache is None else torch.cat([cache, new], 1)
        return self.head(whole.cumsum(1)[:, before:]), whole


def test_a_table_that_grows_bounds_several_sizes_together() -> None:
    package = ep.export_transformer(Table(50).eval())
    decoder = package.graphs["decoder"]
    assert "past + sequence <= 50" in decoder.conditions
    tokens = torch.randint(0, 20, (2, 4))
    assert package.generate(input_ids=tokens.numpy(), max_new_tokens=40).shape == (2, 44)


def test_a_table_that_ends_near_the_sample_is_no_bound() -> None:
    model = Table(9).eval()
    package = ep.export_transformer(model)
    tokens = torch.randint(0, 20, (2, 4))
    got = package.generate(input_ids=tokens.numpy(), max_new_tokens=12)
    with torch.no_grad():
        for _ in range(12):
            tokens = torch.cat([tokens, model(tokens)[0][:, -1:].argmax(-1)], 1)
    assert got.tolist() == tokens.tolist()
