"""A decoder with its sample, called in the ways that it may be called in: at once, and step by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch

from entrepot.exporters.torch.running.errors import MODEL_ERRORS
from entrepot.exporters.torch.running.guard import quiet
from entrepot.exporters.transformers.caches import Layout, apart, copied
from entrepot.exporters.transformers.called import Called
from entrepot.exporters.transformers.fixed import PAST_LENGTH, fitted
from entrepot.exporters.transformers.guesses import Inputs, padded
from entrepot.exporters.transformers.parts import HIDDEN, Encoder, Hidden

NEW = 3
"""New tokens in samples of a step that takes several."""


@dataclass(frozen=True)
class Form:
    """How a decoder is called.

    Attributes:
        layout: Its cache; ``None`` if it has none, so that every step is given all tokens.
        mask_of: Whether it is given the mask of all tokens, of new ones, or none.
        positions: Whether it is given the places of tokens.
        new: How many new tokens the sample of a step has; 1 if it takes one at a time.
        prefill: Whether the prompt goes through a graph of its own.
        hidden: What stands for the results of an encoder.
        capacity: How many tokens its cache has room for; 0 if it grows.
        anew: After how many tokens its cache begins anew; 0 for never.
    """

    layout: Layout | None
    mask_of: Literal["all", "new", ""] = "all"
    positions: bool = True
    new: int = NEW
    prefill: bool = False
    hidden: Hidden | None = None
    capacity: int = 0
    anew: int = 0

    @property
    def bare(self) -> bool:
        """Whether every step is given all tokens."""
        return self.layout is None or not self.layout.states

    def describe(self) -> str:
        """How it goes from token to token, in a few words."""
        if self.bare:
            return "without a cache"
        return "several tokens at once" if self.new > 1 else "one token at a time"


@dataclass
class Trials:
    """A decoder that is tried.

    Attributes:
        called: The model.
        prompt: Tokens of the prompts.
        others: Everything else that the model is given at first.
        start: The place of the first token.
    """

    called: Called
    prompt: torch.Tensor
    others: Inputs
    start: int = 0

    def mask(self, rows: torch.Tensor, *, left: bool) -> torch.Tensor:
        """A mask for tokens, with padding in the first row if the model takes a mask."""
        mask = torch.ones(rows.shape, dtype=torch.int64)
        return padded(mask, left=True) if left else mask

    def rows(self, count: int) -> Inputs:
        """The other inputs for another number of rows."""
        rows = torch.arange(count) % len(self.prompt)
        return {name: value[rows] if len(value) == len(self.prompt) else value for name, value in self.others.items()}

    def run(
        self, rows: torch.Tensor, mask: torch.Tensor | None, others: Inputs | None = None, form: Form | None = None
    ) -> Any:
        """The results of a call without a cache."""
        roles = self.called.roles
        given = {**(self.others if others is None else others), roles.tokens: rows}
        if mask is not None and roles.mask and (form is None or form.mask_of):
            given[roles.mask] = mask
        if mask is not None and roles.positions and (form is None or form.positions):
            given[roles.positions] = self.start + places(mask)
        with quiet(), torch.no_grad():
            return self.called.model(**given, **self.called.flags)

    def first(
        self, rows: torch.Tensor, mask: torch.Tensor, others: Inputs | None = None, form: Form | None = None
    ) -> Any:
        """The scores and the cache of a call without one."""
        result = self.run(rows, mask, others, form)
        return self.called.logits(result), self.called.cache(result)

    def takes_what_it_scores(self) -> bool:
        """Whether there is a row for each token that may be chosen; one that stands for a picture it may refuse."""
        scores = self.first(self.prompt, self.mask(self.prompt, left=False))[0]
        last = self.prompt.clone()
        last[:, -1] = scores.shape[-1] - 1
        try:
            self.run(last, self.mask(last, left=False))
        except IndexError:  # of a table with fewer rows
            return False
        except MODEL_ERRORS:
            return True
        return True

    def step_inputs(
        self, form: Form, before: torch.Tensor, more: torch.Tensor, mask: torch.Tensor | None = None
    ) -> Inputs:
        """What a step is given besides caches, for new tokens after those with some mask."""
        roles, new = self.called.roles, more.shape[1]
        whole = extended(before, new) if mask is None else mask
        given = {roles.tokens: more}
        if form.mask_of:
            given[roles.mask] = self._mask_of_step(form, whole, new)
        if form.positions:
            given[roles.positions] = self.start + places(whole)[:, -new:]
        if roles.encoder:
            given |= self.others
        elif roles.has_encoder and "attention_mask" in self.others:
            given["attention_mask"] = self.others["attention_mask"]
        if form.capacity:
            given[PAST_LENGTH] = torch.tensor([whole.shape[1] - new])
        return given

    def _mask_of_step(self, form: Form, whole: torch.Tensor, new: int) -> torch.Tensor:
        if form.mask_of == "new":
            return whole[:, -new:]
        return torch.nn.functional.pad(whole, (0, max(form.capacity - whole.shape[1], 0)))

    def step_sample(self, form: Form, before: torch.Tensor, more: torch.Tensor) -> Inputs:
        """What the graph of a step is given."""
        assert form.layout is not None
        cache = copied(apart(self.first(self.prompt, before, form=form)[1]))
        by_name = dict(zip(cache.names, cache.tensors, strict=True))
        given = self.step_inputs(form, before, more)
        given |= {
            part.past: fitted(by_name[part.name], part, form.capacity) if form.capacity else by_name[part.name]
            for part in form.layout.parts
        }
        return given | self.encoder_sample(form, only_hidden=True)

    def encoder_sample(self, form: Form, *, only_hidden: bool = False) -> Inputs:
        """What the encoder leaves for the decoder."""
        hidden = form.hidden is not None and form.hidden.needed
        if not self.called.roles.has_encoder or (only_hidden and not hidden):
            return {}
        with quiet(), torch.no_grad():
            found = Encoder(self.called, form.layout, hidden=hidden)(**self.others)
        return {name: value for name, value in found.items() if not only_hidden or name == HIDDEN}


def places(mask: torch.Tensor) -> torch.Tensor:
    """The place of each token among those that count."""
    return (mask.cumsum(-1) - 1).clamp(min=0)


def extended(mask: torch.Tensor, new: int) -> torch.Tensor:
    """A mask with further tokens, which count."""
    return torch.cat([mask, torch.ones(len(mask), new, dtype=mask.dtype)], 1)
