"""In which form a decoder can be a graph, found by running it: what it does in one call, it has to do in two.

A form is taken when the scores after a cache are those of a call without one, with padding. So no architecture has to
be known: one that wants the mask of new tokens only, or takes one token at a time, shows it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from entrepot.exporters.structure import Flat, unflatten
from entrepot.exporters.torch.running.errors import MODEL_ERRORS
from entrepot.exporters.torch.running.guard import quiet
from entrepot.exporters.transformers.caches import Layout, apart, copied, layout_of
from entrepot.exporters.transformers.guesses import Inputs, tokens, vocabulary
from entrepot.exporters.transformers.parts import HIDDEN, Hidden, Step
from entrepot.exporters.transformers.trials import NEW, Form, Trials, extended
from entrepot.exporters.transformers.two_parts import memory_alone, same_memory
from entrepot.exporters.transformers.upstream import forgets_after
from entrepot.ir.errors import ConversionError

_GROWING = "leave cache out: it grows then"

_CLOSE = {torch.float16: 2e-2, torch.bfloat16: 1e-1, torch.float64: 1e-7}


@dataclass(frozen=True)
class Forms:
    """The search for the forms of a decoder.

    Attributes:
        trials: The decoder.
    """

    trials: Trials

    def __iter__(self) -> Iterator[Form]:
        """The forms that do what the model does, the best first: several tokens at once, one, and without a cache.

        Models that loop over tokens in Python cannot be captured with several; what no graph can do with a cache is
        given all tokens at every step.
        """
        caches = self._caches()
        if None not in caches:
            first, wider, longer = (copied(apart(cache)) for cache in caches)
            for new in (NEW, 1):
                candidates = self._candidates(first, wider, longer, new)
                found = next((self._narrower(form) for form in candidates if self.holds(form)), None)
                if found is not None:
                    found = replace(found, prefill=bool(self._alone) or not self._starts(found))
                    yield replace(found, anew=self._anew(found, caches[0]))
        if not self._alone:
            yield self._bare(caches)

    def _narrower(self, form: Form) -> Form:
        """The form with a mask of new tokens alone, where nothing in the cache is about older ones and that will do."""
        if form.mask_of != "all" or form.layout is None or form.layout.grows:
            return form
        narrow = replace(form, mask_of="new")
        return narrow if self.holds(narrow) else form

    def _anew(self, form: Form, cache: Any) -> int:
        """After how many tokens the model asks for a new cache, if a step with the old one gives something else."""
        length = forgets_after(self.trials.called.whole, cache)
        if not length or not form.positions:
            return length
        there = replace(self, trials=replace(self.trials, start=max(length - self.trials.prompt.shape[1], 0)))
        return 0 if there.holds(form) else length

    def _caches(self) -> list[Any]:
        """The caches after the prompts, with a row more, and with more tokens."""
        prompt = self.trials.prompt
        sizes = prompt, torch.cat([prompt, prompt[:1]]), torch.cat([prompt, prompt[:, -2:]], 1)
        given = ((rows, self.trials.mask(rows, left=False), self.trials.rows(len(rows))) for rows in sizes)
        try:
            return [self.trials.first(*each)[1] for each in given]
        except MODEL_ERRORS as error:
            what, last = f"{type(error).__name__}: {error}".splitlines()[0], vocabulary(self.trials.called.model) - 1
            raise ConversionError(
                f"it does not take tokens up to {last}, or prompts of other sizes: {what}",
                hint="export its forward alone: task='forward'",
            ) from error

    def fixed(self, form: Form, capacity: int) -> Form:
        """The form with a cache that has room for a number of tokens, which steps write into.

        Raises:
            ConversionError: Its cache cannot be replaced by such a one.
        """
        if form.layout is None or form.bare:
            raise ConversionError("it is called without a cache, so none can have a fixed size", hint=_GROWING)
        if not form.layout.grows:
            return form
        found = replace(form, capacity=capacity)
        if not self.holds(found):
            raise ConversionError("with a cache of a fixed size it gives other scores, or none", hint=_GROWING)
        return replace(found, prefill=bool(self._alone) or not self._starts(found))

    def is_causal(self) -> bool:
        """Whether scores depend on nothing that comes later; if not, there is nothing to generate with."""
        roles = self.trials.called.roles
        if roles.has_encoder and not roles.encoder:
            return True
        longer = torch.cat([self.trials.prompt, self.trials.prompt[:, -2:]], 1)
        try:
            one, other = (
                self.trials.first(rows, self.trials.mask(rows, left=False)) for rows in (self.trials.prompt, longer)
            )
        except MODEL_ERRORS:
            return True
        return close(other[0][:, : one[0].shape[1]], one[0]) and (not roles.encoder or same_memory(one[1], other[1]))

    def _bare(self, caches: Sequence[Any]) -> Form:
        """Without a cache; the results of an encoder are what every step is given."""
        roles = self.trials.called.roles
        hidden, layout = self._hidden()[-1], None
        if roles.encoder:
            first, wider, longer = (apart(memory_alone(cache)) for cache in caches)
            layout = layout_of(first, wider, longer, first)
        return Form(layout, mask_of="all" if roles.mask else "", positions=bool(roles.positions), hidden=hidden)

    @property
    def _alone(self) -> Inputs:
        """What only the prompt's call takes, as far as a decoder without an encoder goes."""
        return {} if self.trials.called.roles.has_encoder else self.trials.others

    def _candidates(self, first: Flat, wider: Flat, longer: Flat, new: int) -> Iterator[Form]:
        masks: tuple[Any, ...] = ("all", "new", "") if self.trials.called.roles.mask else ("",)
        places = (True, False) if self.trials.called.roles.positions else (False,)
        hidden = self._hidden()
        for mask_of, positions, stands in itertools.product(masks, places, hidden):
            form = Form(None, mask_of, positions, new, hidden=stands)
            try:
                after = apart(self._stepped(form, first))
                layout = layout_of(first, wider, longer, after)
            except (*MODEL_ERRORS, ConversionError):
                continue
            if layout.states:
                yield replace(form, layout=layout, hidden=self._placed(layout, stands))

    def _hidden(self) -> tuple[Hidden | None, ...]:
        if not self.trials.called.roles.encoder_results:
            return (None,)
        result = self.trials.run(self.trials.prompt[:, :1], None)
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
        more = tokens(self.trials.called.model, len(self.trials.prompt), form.new, seed=4)
        given = self.trials.step_inputs(form, self.trials.mask(self.trials.prompt, left=False), more)
        given |= self.trials.called.with_cache(unflatten(first.tree, [tensor.clone() for tensor in first.tensors]))
        if form.hidden is not None:
            given |= self._encoded(form.hidden)
        with quiet(), torch.no_grad():
            return self.trials.called(given)[1]

    def _encoded(self, hidden: Hidden) -> Inputs:
        result = self.trials.run(self.trials.prompt[:, :1], None)
        values = result["encoder_last_hidden_state"]
        stand_in = replace(hidden, needed=True).build(
            {HIDDEN: values if hidden.needed else torch.zeros_like(values)}, 0, values.dtype
        )
        return {self.trials.called.roles.encoder_results: stand_in}

    def holds(self, form: Form) -> bool:
        """Whether a step after a cache gives what one call gives, with padding and without."""
        more = tokens(self.trials.called.model, len(self.trials.prompt), form.new, seed=5)
        everything = torch.cat([self.trials.prompt, more], 1)
        for left in (True, False) if form.mask_of else (False,):
            mask = self.trials.mask(self.trials.prompt, left=left)
            try:
                with quiet(), torch.no_grad():
                    wanted = self.trials.first(everything, extended(mask, form.new), form=form)[0]
                    given = self.trials.step_sample(form, mask, more)
                    got = Step(self.trials.called, form.layout, form.hidden)(**given)["logits"]
            except MODEL_ERRORS:
                return False
            if not close(got, wanted[:, -form.new :]):
                return False
        return True

    def _starts(self, form: Form) -> bool:
        """Whether a step after nothing gives what a call without a cache gives."""
        assert form.layout is not None
        mask = self.trials.mask(self.trials.prompt, left=True)
        empty = {
            part.past: torch.zeros(
                [form.capacity if axis == part.growing else size for axis, size in enumerate(part.shape)],
                dtype=part.dtype,
            )
            for part in form.layout.states
        }
        try:
            with quiet(), torch.no_grad():
                if form.new == 1:
                    return self._starts_singly(form, mask, empty)
                wanted = self.trials.first(self.trials.prompt, mask, form=form)[0]
                given = (
                    self.trials.step_inputs(form, mask[:, :0], self.trials.prompt, mask)
                    | empty
                    | self.trials.encoder_sample(form)
                )
                got = Step(self.trials.called, form.layout, form.hidden)(**given)["logits"]
        except MODEL_ERRORS:
            return False
        return close(got[:, 1:], wanted[:, 1:])  # what is padding sees nothing, and may be anything

    def _starts_singly(self, form: Form, mask: torch.Tensor, states: Inputs) -> bool:
        """Whether one token after the other does, where padding leaves the state of its row as it is."""
        wanted = self.trials.first(self.trials.prompt, mask, form=form)[0]
        step, given, encoded = (
            Step(self.trials.called, form.layout, form.hidden),
            dict(states),
            self.trials.encoder_sample(form),
        )
        assert form.layout is not None
        results: dict[str, torch.Tensor] = {}
        for at in range(self.trials.prompt.shape[1]):
            fed = self.trials.step_inputs(form, mask[:, :at], self.trials.prompt[:, at : at + 1], mask[:, : at + 1])
            before = {name: value.clone() for name, value in given.items()}  # steps change caches in place
            results = step(**fed, **before, **encoded)
            for part in form.layout.states:
                counts = (
                    mask[:, at].bool().reshape([-1 if axis == part.batch else 1 for axis in range(len(part.shape))])
                )
                new = results[part.present]
                given[part.past] = new if part.growing is not None else torch.where(counts, new, given[part.past])
        return close(results["logits"], wanted[:, -1:])


def close(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two ways to compute scores agree, as far as rounding lets them."""
    if one.shape != other.shape:
        return False
    scale = float(other.abs().max()) or 1.0
    return float((one - other).abs().max()) <= _CLOSE.get(other.dtype, 1e-3) * scale
