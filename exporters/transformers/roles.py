"""What the arguments and results of a model are for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Task = Literal["auto", "generate", "forward"]


@dataclass(frozen=True)
class Roles:
    """What a model's arguments and results are for; whatever is empty is told by their names.

    Attributes:
        tokens: The parameter for tokens.
        mask: The parameter that says which tokens count.
        positions: The parameter for the places of tokens.
        cache: The parameter for the cache that an earlier call returned; several, where it is in parts, which are the
            results after the scores, in this order.
        encoder_results: The parameter for results of an encoder.
        encoder: The part that is an encoder, where no parameter takes its results: a module or a method, by its path.
        logits: The result with the scores of tokens: its name, or its place in a tuple.
        cache_result: The result with the cache.
    """

    tokens: str = ""
    mask: str = ""
    positions: str = ""
    cache: str | tuple[str, ...] = ""
    encoder_results: str = ""
    encoder: str = ""
    logits: str | int = ""
    cache_result: str | int = ""

    @property
    def has_encoder(self) -> bool:
        """Whether there is an encoder before the decoder."""
        return bool(self.encoder_results or self.encoder)
