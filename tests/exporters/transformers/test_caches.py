"""What is found out about caches, on ones that no library knows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

import entrepot as ep
from entrepot.exporters.transformers.caches import apart, copied, layout_of


@dataclass
class Cache:
    """Keys that grow, a state that does not, something of an encoder, a constant, and a count in Python."""

    keys: torch.Tensor
    state: dict[str, torch.Tensor]
    encoded: torch.Tensor
    window: torch.Tensor = field(default_factory=lambda: torch.tensor(4))
    seen: int = 0


def cache(rows: int, length: int, step: int = 0) -> Any:
    """A cache after some tokens, and one further step."""
    made = Cache(torch.ones(rows, length + step, 6), {"sum": torch.full((3, rows), step + 1.0)}, torch.ones(rows, 7, 6))
    made.seen = length + step
    return copied(apart(made))


def test_each_tensor_is_told_by_how_it_changes() -> None:
    layout = layout_of(cache(2, 5), cache(3, 5), cache(2, 7), cache(2, 5, step=3))
    parts = {part.name: (part.batch, part.growing, part.fixed) for part in layout.parts}
    assert parts == {"keys": (0, 1, False), "state.sum": (1, None, False), "encoded": (0, None, True)}


def test_a_count_of_tokens_is_the_size_of_a_tensor() -> None:
    layout = layout_of(cache(2, 5), cache(3, 5), cache(2, 7), cache(2, 5, step=3))
    tensors = {
        "past.keys": torch.ones(2, 11, 6),
        "past.state.sum": torch.ones(3, 2),
        "encoded.encoded": torch.ones(2, 7, 6),
    }
    built = layout.build(tensors)
    assert built.seen == 11
    assert built.window == 4
    assert layout.take(built).keys() == {"present.keys", "present.state.sum"}


def test_a_count_that_no_tensor_has_is_refused() -> None:
    caches = [cache(2, 5), cache(3, 5), cache(2, 7), cache(2, 5, step=3)]
    for made in caches:
        made.tensors[0] = torch.ones(2 if made is not caches[1] else 3, made.tensors[0].shape[1] + 1, 6)
    with pytest.raises(ep.ConversionError, match="seen"):
        layout_of(*caches)


class Counting(torch.nn.Module):
    """A decoder of one's own: what it says depends on the mean of all tokens so far."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(20, 8)
        self.head = torch.nn.Linear(8, 20)

    def forward(self, input_ids: torch.Tensor, cache: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """Scores, and the embeddings of all tokens so far."""
        new = self.embedding(input_ids)
        whole = new if cache is None else torch.cat([cache, new], 1)
        count = torch.arange(1, whole.shape[1] + 1)[None, :, None]
        return self.head(whole.cumsum(1) / count)[:, whole.shape[1] - new.shape[1] :], whole


def test_a_decoder_that_no_library_knows_generates() -> None:
    model = Counting().eval()
    package = ep.export_transformer(model)
    assert package.report, package.report
    tokens = torch.randint(0, 20, (2, 4))
    with torch.no_grad():
        for _ in range(5):
            tokens = torch.cat([tokens, model(tokens)[0][:, -1:].argmax(-1)], 1)
    assert package.using("cpu").generate(input_ids=tokens[:, :4], max_new_tokens=5).tolist() == tokens.tolist()


def test_an_input_that_has_no_effect_is_refused() -> None:
    class Deaf(Counting):
        def forward(self, input_ids: Any, cache: Any = None, token_type_ids: Any = None) -> Any:
            return super().forward(input_ids, cache)

    ids = torch.randint(0, 20, (2, 5))
    with pytest.raises(ep.EntrepotError, match="token_type_ids"):
        ep.export_transformer(Deaf().eval(), {"input_ids": ids, "token_type_ids": torch.ones_like(ids)})


class Unfit(Counting):
    """A cache whose size is no axis of it: what it counts in Python is lost in a graph."""

    def forward(self, input_ids: torch.Tensor, cache: Any = None) -> tuple[torch.Tensor, Any]:
        """Scores, and the sum of all embeddings so far beside how many they are."""
        new = self.embedding(input_ids)
        total, count = (torch.zeros_like(new[:, 0]), 0) if cache is None else cache
        sums = total[:, None] + new.cumsum(1)
        counts = count + torch.arange(1, new.shape[1] + 1)[None, :, None]
        return self.head(sums / counts), (sums[:, -1], count + new.shape[1])


def test_what_no_graph_can_do_with_a_cache_is_done_without_one() -> None:
    model = Unfit().eval()
    package = ep.export_transformer(model)
    assert not package.manifest.states
    assert package.report, package.report
    tokens = torch.randint(0, 20, (2, 4))
    wanted = tokens
    with torch.no_grad():
        for _ in range(5):
            wanted = torch.cat([wanted, model(wanted)[0][:, -1:].argmax(-1)], 1)
    assert package.generate(input_ids=tokens.numpy(), max_new_tokens=5).tolist() == wanted.tolist()


def test_what_looks_at_later_tokens_does_not_generate() -> None:
    class Both(Counting):
        def forward(self, input_ids: Any, cache: Any = None) -> Any:
            scores, whole = super().forward(input_ids, cache)
            return scores + self.head(whole.mean(1, keepdim=True)), whole

    package = ep.export_transformer(Both().eval())
    assert package.manifest.kind == "forward"
