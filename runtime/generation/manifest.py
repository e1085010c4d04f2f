"""What a package says of itself: its graphs, the state that goes round between them, and how it generates."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from entrepot.ir.errors import ModelFormatError
from entrepot.runtime.generation.settings import Settings

FORMAT = 1
"""The version of ``entrepot.json``."""

Kind = Literal["forward", "decoder", "encoder-decoder", "loop"]


@dataclass(frozen=True)
class State:
    """A tensor that a decoder takes and returns.

    Attributes:
        past: The input.
        present: The output, which is the next step's input.
        shape: Its shape before the first step; the batch axis is -1.
        dtype: Its element type.
    """

    past: str
    present: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def batch(self) -> int:
        """Which axis is the batch's."""
        return self.shape.index(-1)


@dataclass(frozen=True)
class Manifest:
    """A package without its graphs.

    Attributes:
        kind: ``"forward"``: one graph, run once. ``"decoder"``: tokens in, logits out, with a state.
            ``"encoder-decoder"``: the same after an encoder. ``"loop"``: one graph that generates by itself.
        tokens: The decoder's input for tokens.
        logits: Its output for their scores.
        mask: Its input that says which tokens count, if it has one.
        mask_of: Whether the mask is about all tokens so far or about new ones.
        source: What an encoder is given first of all, and how many rows there are.
        source_mask: The input that says which of it counts, if there is one; all of it, unless it is given.
        positions: Its input for the places of tokens, if it has one.
        first_scored: Its input that says from which of the new tokens on there are scores, if it has one; negative
            numbers count from the end.
        states: What goes from one step to the next; none if every step is given all tokens.
        capacity: How many tokens states have room for, where they are written in place; 0 if they grow.
        past_length: The input that says how many tokens there are in such states.
        constants: Outputs of the encoder that the decoder takes at every step, with their batch axes.
        step: The most tokens that the decoder takes at once; 0 for any number. The prompt goes through ``prefill``
            where there is such a graph.
        settings: How it generates unless a call says otherwise.
        notes: What a user should know.
        versions: What it was made with.
    """

    kind: Kind = "forward"
    tokens: str = "input_ids"
    logits: str = "logits"
    mask: str = ""
    mask_of: Literal["all", "new"] = "all"
    source: str = ""
    source_mask: str = ""
    positions: str = ""
    first_scored: str = ""
    states: tuple[State, ...] = ()
    capacity: int = 0
    past_length: str = ""
    constants: Mapping[str, int] = field(default_factory=dict)
    step: int = 0
    settings: Settings = field(default_factory=Settings)
    notes: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """For a file."""
        mine = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        states = [dataclasses.asdict(state) for state in self.states]
        return mine | {"states": states, "settings": self.settings.as_dict()}

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> Manifest:
        """From a file.

        Raises:
            ModelFormatError: It does not say what a package has to say.
        """
        if not isinstance(described, Mapping):
            raise ModelFormatError(f"it is no description of a package, but of type {type(described).__name__}")
        try:
            known = {each.name: described[each.name] for each in dataclasses.fields(cls) if each.name in described}
            states = tuple(State(**state | {"shape": tuple(state["shape"])}) for state in known.pop("states", ()))
            settings = Settings.of(known.pop("settings", {}))
            return cls(**known | {"states": states, "settings": settings, "notes": tuple(known.get("notes", ()))})
        except (TypeError, KeyError, AttributeError) as error:
            raise ModelFormatError(f"it is no description of a package: {error}") from error
