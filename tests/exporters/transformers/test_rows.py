"""Rows of a tensor that a module takes apart and joins, while their number varies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import entrepot as ep
from entrepot.exporters.transformers.rows import WholeRows


class Captioner(torch.nn.Module):
    """A decoder whose prompt is told of pictures, which it takes one by one, as multi-modal models do."""

    def __init__(self, stacked: bool) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(20, 8)
        self.pictures = torch.nn.Linear(6, 8)
        self.head = torch.nn.Linear(8, 20)
        self.stacked = stacked

    def forward(self, input_ids: Any, cache: Any = None, pixel_values: Any = None) -> Any:
        """Scores, and the embeddings of all tokens so far."""
        new = self.embedding(input_ids)
        if pixel_values is not None:
            parts = list(self.pictures(pixel_values))
            seen = torch.stack(parts) if self.stacked else torch.cat(parts, dim=0).reshape(len(input_ids), -1, 8)
            new = torch.cat([new[:, :1] + seen.mean(1, keepdim=True), new[:, 1:]], 1)
        whole = new if cache is None else torch.cat([cache, new], 1)
        return self.head(whole.cumsum(1)[:, whole.shape[1] - new.shape[1] :]), whole


@pytest.mark.parametrize("stacked", [False, True])
def test_a_prompt_with_pictures_takes_any_number_of_rows(stacked: bool) -> None:
    torch.manual_seed(1)
    model = Captioner(stacked).eval()
    ids, pictures = torch.randint(0, 20, (2, 5)), torch.randn(2, 3, 6)
    package = ep.export_transformer(model, {"input_ids": ids, "pixel_values": pictures})
    tokens, shown = torch.randint(0, 20, (4, 3)), torch.randn(4, 3, 6)
    wanted = model(tokens, None, shown)[0].detach().numpy()
    got = package.forward(input_ids=tokens.numpy(), pixel_values=shown.numpy())["logits"]
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def test_rows_of_a_known_number_are_as_ever() -> None:
    x = torch.arange(6.0).reshape(3, 2)
    with WholeRows():
        first, *others = x
        assert len(others) == len(x) - 1 == 2
        assert torch.equal(torch.cat(list(x)), x.flatten())
        assert torch.equal(torch.stack([first, *others], 1), x.T)
