"""In which form a decoder can be a graph, found by running it: what it does in one call, it has to do in two.

A form is taken when the scores after a cache are those of a call without one, with padding. So no architecture has to
be known: one that wants the mask of new tokens only, or takes one token at a time, shows it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch

from entrepot.exporters.structure import Flat, unflatten
from entrepot.exporters.torch.running.eager import MODEL_ERRORS
from entrepot.exporters.transformers.caches import Layout, apart, copied, layout_of
from entrepot.exporters.transformers.called import Called
from entrepot.exporters.transformers.fixed import PAST_LENGTH, fitted
from entrepot.exporters.transformers.parts import HIDDEN, Encoder, Hidden, Step
from entrepot.exporters.transformers.samples import Inputs, padded, tokens
from entrepot.ir.errors import ConversionError

NEW = 3
"""New tokens in samples of a step that takes several."""

_GROWING = "leave cache out: it grows then"

_CLOSE = {torch.float16: 2e-2, torch.bfloat16: 1e-1, torch.float64: 1e-7}


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
    """

    layout: Layout | None
    mask_of: Literal["all", "new", ""] = "all"
    positions: bool = True
    new: int = NEW
    prefill: bool = False
    hidden: Hidden | None = None
    capacity: int = 0

    def describe(self) -> str:
        """How it goes from token to token, in a few words."""
        if self.layout is None:
            return "without a cache"
        return "several tokens at once" if self.new > 1 else "one token at a time"


@dataclass
class Trials:
    """A decoder that is tried.

    Attributes:
        called: The model.
        prompt: Tokens of the prompts.
        others: Everything else that the model is given at first.
    """

    called: Called
    prompt: torch.Tensor
    others: Inputs

    def forms(self) -> Iterator[Form]:
        """The forms that do what the model does, the best first: several tokens at once, one, and without a cache.

        Models that loop over tokens in Python cannot be captured with several; what no graph can do with a cache is
        given all tokens at every step.
        """
        mask = self.mask(self.prompt, left=False)
        _, cache = self.first(self.prompt, mask)
        if cache is not None:
            first = copied(apart(cache))
            wide = torch.cat([self.prompt, self.prompt[:1]])
            wider = copied(apart(self.first(wide, self.mask(wide, left=False), self.rows(len(wide)))[1]))
            long = torch.cat([self.prompt, self.prompt[:, -2:]], 1)
            longer = copied(apart(self.first(long, self.mask(long, left=False))[1]))
            for new in (NEW, 1):
                candidates = self._candidates(first, wider, longer, new)
                found = next((form for form in candidates if self._holds(form)), None)
                if found is not None:
                    yield replace(found, prefill=bool(self._alone) or not self._starts(found))
        if not self._alone:
            yield self._bare()

    def fixed(self, form: Form, capacity: int) -> Form:
        """The form with a cache that has room for a number of tokens, which steps write into.

        Raises:
            ConversionError: Its cache cannot be replaced by such a one.
        """
        if form.layout is None:
            raise ConversionError("it is called without a cache, so none can have a fixed size", hint=_GROWING)
        if not form.layout.grows:
            return form
        found = replace(form, capacity=capacity)
        if not self._holds(found):
            raise ConversionError("with a cache of a fixed size it gives other scores, or none", hint=_GROWING)
        return replace(found, prefill=bool(self._alone) or not self._starts(found))

    def is_causal(self) -> bool:
        """Whether scores depend on nothing that comes later; if not, there is nothing to generate with."""
        if self.called.roles.has_encoder:
            return True
        longer = torch.cat([self.prompt, self.prompt[:, -2:]], 1)
        try:
            one, other = (self.first(rows, self.mask(rows, left=False))[0] for rows in (self.prompt, longer))
        except MODEL_ERRORS:
            return True
        return close(other[:, : one.shape[1]], one)

    def _bare(self) -> Form:
        """Without a cache; the results of an encoder are what every step is given."""
        roles = self.called.roles
        hidden = self._hidden()[-1]
        return Form(None, mask_of="all" if roles.mask else "", positions=bool(roles.positions), hidden=hidden)

    @property
    def _alone(self) -> Inputs:
        """What only the prompt's call takes, as far as a decoder without an encoder goes."""
        return {} if self.called.roles.has_encoder else self.others

    def _candidates(self, first: Flat, wider: Flat, longer: Flat, new: int) -> Iterator[Form]:
        masks: tuple[Any, ...] = ("all", "new", "") if self.called.roles.mask else ("",)
        places = (True, False) if self.called.roles.positions else (False,)
        hidden = self._hidden()
        for mask_of, positions, stands in itertools.product(masks, places, hidden):
            form = Form(None, mask_of, positions, new, hidden=stands)
            try:
                after = apart(self._stepped(form, first))
                layout = layout_of(first, wider, longer, after)
            except (*MODEL_ERRORS, ConversionError):
                continue
            yield replace(form, layout=layout, hidden=self._placed(layout, stands))

    def _hidden(self) -> tuple[Hidden | None, ...]:
        if not self.called.roles.has_encoder:
            return (None,)
        result = self.run(self.prompt[:, :1], None)
        shape = tuple(result["encoder_last_hidden_state"].shape)
        return Hidden(shape), Hidden(shape, needed=True)

    def _placed(self, layout: Layout, hidden: Hidden | None) -> Hidden | None:
        """Where the length of the encoder's results is to be read from."""
        if hidden is None or hidden.needed:
            return hidden
        lengths = ((part, axis) for part in layout.parts if part.fixed for axis in range(len(part.shape)))
        found = (
            (part.past, axis) for part, axis in lengths if axis != part.batch and part.shape[axis] == hidden.shape[1]
        )
        return replace(hidden, source=next(found, None))

    def _stepped(self, form: Form, first: Flat) -> Any:
        """The cache after a step."""
        more = tokens(self.called.model, len(self.prompt), form.new, seed=4)
        given = self.step_inputs(form, self.mask(self.prompt, left=False), more)
        given |= self.called.with_cache(unflatten(first.tree, [tensor.clone() for tensor in first.tensors]))
        if form.hidden is not None:
            given |= self._encoded(form.hidden)
        return self._call(given)[1]

    def _encoded(self, hidden: Hidden) -> Inputs:
        result = self.run(self.prompt[:, :1], None)
        values = result["encoder_last_hidden_state"]
        stand_in = replace(hidden, needed=True).build(
            {HIDDEN: values if hidden.needed else torch.zeros_like(values)}, 0, values.dtype
        )
        return {self.called.roles.encoder_results: stand_in}

    def _holds(self, form: Form) -> bool:
        """Whether a step after a cache gives what one call gives, with padding and without."""
        more = tokens(self.called.model, len(self.prompt), form.new, seed=5)
        everything = torch.cat([self.prompt, more], 1)
        for left in (True, False) if form.mask_of else (False,):
            mask = self.mask(self.prompt, left=left)
            try:
                with torch.no_grad():
                    wanted = self.first(everything, _extended(mask, form.new), form=form)[0]
                    given = self.step_sample(form, mask, more)
                    got = Step(self.called, form.layout, form.hidden)(**given)["logits"]
            except MODEL_ERRORS:
                return False
            if not close(got, wanted[:, -form.new :]):
                return False
        return True

    def _starts(self, form: Form) -> bool:
        """Whether a step after nothing gives what a call without a cache gives."""
        assert form.layout is not None
        mask = self.mask(self.prompt, left=True)
        empty = {
            part.past: torch.zeros(
                [form.capacity if axis == part.growing else size for axis, size in enumerate(part.shape)],
                dtype=part.dtype,
            )
            for part in form.layout.states
        }
        try:
            with torch.no_grad():
                if form.new == 1:
                    return self._starts_singly(form, mask, empty)
                wanted = self.first(self.prompt, mask, form=form)[0]
                given = self.step_inputs(form, mask[:, :0], self.prompt, mask) | empty | self.encoder_sample(form)
                got = Step(self.called, form.layout, form.hidden)(**given)["logits"]
        except MODEL_ERRORS:
            return False
        return close(got[:, 1:], wanted[:, 1:])  # what is padding sees nothing, and may be anything

    def _starts_singly(self, form: Form, mask: torch.Tensor, states: Inputs) -> bool:
        """Whether one token after the other does, where padding leaves the state of its row as it is."""
        wanted = self.first(self.prompt, mask, form=form)[0]
        step, given, encoded = Step(self.called, form.layout, form.hidden), dict(states), self.encoder_sample(form)
        assert form.layout is not None
        results: dict[str, torch.Tensor] = {}
        for at in range(self.prompt.shape[1]):
            fed = self.step_inputs(form, mask[:, :at], self.prompt[:, at : at + 1], mask[:, : at + 1])
            before = {name: value.clone() for name, value in given.items()}  # steps change caches in place
            results = step(**fed, **before, **encoded)
            for part in form.layout.states:
                counts = (
                    mask[:, at].bool().reshape([-1 if axis == part.batch else 1 for axis in range(len(part.shape))])
                )
                new = results[part.present]
                given[part.past] = new if part.growing is not None else torch.where(counts, new, given[part.past])
        return close(results["logits"], wanted[:, -1:])

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
            given[roles.positions] = places(mask)
        with torch.no_grad():
            return self.called.model(**given, **self.called.flags)

    def first(
        self, rows: torch.Tensor, mask: torch.Tensor, others: Inputs | None = None, form: Form | None = None
    ) -> Any:
        """The scores and the cache of a call without one."""
        result = self.run(rows, mask, others, form)
        return self.called.logits(result), self.called.cache(result)

    def _call(self, given: Mapping[str, Any]) -> Any:
        with torch.no_grad():
            return self.called(given)

    def step_inputs(
        self, form: Form, before: torch.Tensor, more: torch.Tensor, mask: torch.Tensor | None = None
    ) -> Inputs:
        """What a step is given besides caches, for new tokens after those with some mask."""
        roles, new = self.called.roles, more.shape[1]
        whole = _extended(before, new) if mask is None else mask
        given = {roles.tokens: more}
        if form.mask_of:
            given[roles.mask] = self._mask_of_step(form, whole, new)
        if form.positions:
            given[roles.positions] = places(whole)[:, -new:]
        if roles.has_encoder and "attention_mask" in self.others:
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
        if form.hidden is None or (only_hidden and not form.hidden.needed):
            return {}
        with torch.no_grad():
            found = Encoder(self.called, form.layout, hidden=form.hidden.needed)(**self.others)
        return {name: value for name, value in found.items() if not only_hidden or name == HIDDEN}


def places(mask: torch.Tensor) -> torch.Tensor:
    """The place of each token among those that count."""
    return (mask.cumsum(-1) - 1).clamp(min=0)


def close(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two ways to compute scores agree, as far as rounding lets them."""
    if one.shape != other.shape:
        return False
    scale = float(other.abs().max()) or 1.0
    return float((one - other).abs().max()) <= _CLOSE.get(other.dtype, 1e-3) * scale


def _extended(mask: torch.Tensor, new: int) -> torch.Tensor:
    return torch.cat([mask, torch.ones(len(mask), new, dtype=mask.dtype)], 1)
