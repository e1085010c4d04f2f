"""The parts of a model as modules of their own: each is exported as one graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from entrepot.exporters.transformers.caches import Layout
from entrepot.exporters.transformers.called import Called
from entrepot.exporters.transformers.fixed import PAST_LENGTH, writing
from entrepot.exporters.transformers.rows import WholeRows
from entrepot.exporters.transformers.upstream import encoder_results

HIDDEN = "encoded.hidden"
"""The results of an encoder themselves, where a decoder looks at them beyond its first step."""


@dataclass(frozen=True)
class Hidden:
    """How the results of an encoder are replaced: decoders look at their shape, after the first step.

    Attributes:
        shape: Their shape in the sample.
        source: An input that has their length, and on which axis; ``None`` if the length is always the same.
        needed: Whether decoders look at their values after all.
    """

    shape: tuple[int, ...]
    source: tuple[str, int] | None = None
    needed: bool = False

    def build(self, given: Mapping[str, torch.Tensor], rows: int, dtype: torch.dtype) -> Any:
        """Results of an encoder, as a decoder takes them."""
        if self.needed:
            return encoder_results(given[HIDDEN])
        length = self.shape[1] if self.source is None else given[self.source[0]].shape[self.source[1]]
        return encoder_results(torch.zeros((rows, length, *self.shape[2:]), dtype=dtype))


class Part(torch.nn.Module):
    """A model, called in one of its ways.

    Args:
        called: The model.
        layout: Its cache.
    """

    def __init__(self, called: Called, layout: Layout | None) -> None:
        super().__init__()
        self.model = called.model
        self._called, self._layout = called, layout

    def _results(self, given: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        logits, cache = self._called(given)
        return {"logits": logits} | ({} if self._layout is None else self._layout.take(cache))


class First(Part):
    """The prompt and whatever else the model takes, without a cache."""

    def forward(self, **given: torch.Tensor) -> dict[str, torch.Tensor]:
        """The scores of tokens, and the cache."""
        with WholeRows():
            return self._results(given)


class Step(Part):
    """New tokens, after those that are in the cache.

    Args:
        called: The model.
        layout: Its cache.
        hidden: What stands for the results of its encoder, if it has one.
    """

    def __init__(self, called: Called, layout: Layout | None, hidden: Hidden | None = None) -> None:
        super().__init__(called, layout)
        self._hidden = hidden

    def forward(self, **given: torch.Tensor) -> dict[str, torch.Tensor]:
        """The scores of the new tokens, and the cache with them."""
        roles, layout = self._called.roles, self._layout
        inside = {HIDDEN, PAST_LENGTH} | (set() if layout is None else {part.past for part in layout.parts})
        arguments: dict[str, Any] = {name: value for name, value in given.items() if name not in inside}
        if layout is not None:
            cache = layout.build(given)
            arguments |= self._called.with_cache(writing(cache, given[PAST_LENGTH]) if PAST_LENGTH in given else cache)
        if self._hidden is not None:
            dtype = next((value.dtype for name, value in given.items() if name in inside), torch.float32)
            arguments[roles.encoder_results] = self._hidden.build(given, given[roles.tokens].shape[0], dtype)
        return self._results(arguments)


class Encoder(Part):
    """What an encoder leaves for the decoder: keys and values of its results, or these themselves.

    Args:
        called: The model.
        layout: The decoder's cache.
        hidden: Whether the decoder needs the results themselves.
    """

    def __init__(self, called: Called, layout: Layout | None, *, hidden: bool) -> None:
        super().__init__(called, layout)
        self._needed = hidden

    def forward(self, **given: torch.Tensor) -> dict[str, torch.Tensor]:
        """Run the encoder and one step of the decoder, of which nothing but the keys and values is kept."""
        first = next(iter(given.values()))
        tokens = torch.zeros((first.shape[0], 1), dtype=torch.int64)
        result = self.model(**given, **self._called.flags, **{self._called.roles.tokens: tokens})
        cache = self._called.cache(result)
        kept = {} if self._layout is None else self._layout.fixed(cache)
        return kept | ({HIDDEN: result["encoder_last_hidden_state"]} if self._needed else {})
