"""Whether a model computes the same states of several tokens at once and of one after the other.

Some bound a step of their recurrence in one of the two ways alone. A graph of the first is then wrong for one token,
which its proof would find out after a capture, a translation and most of its runs. The rule is that of the proof.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from entrepot.exporters.torch.running.endless import CallCounter
from entrepot.exporters.torch.running.errors import MODEL_ERRORS
from entrepot.exporters.torch.running.guard import quiet
from entrepot.exporters.transformers.guesses import Inputs, tokens
from entrepot.exporters.transformers.parts import Step
from entrepot.exporters.transformers.trials import Form, Trials, extended
from entrepot.ir.errors import ConversionError
from entrepot.parity.compare import agree, compare
from entrepot.parity.sensitivity import sensitivities
from entrepot.parity.tolerance import default_tolerance

_States = Mapping[str, Any]
"""Arrays by the names of the inputs for them."""


def check_steps(trials: Trials, form: Form) -> None:
    """Refuse a form that takes several tokens where one after the other leaves other states, and not by rounding.

    Raises:
        ConversionError: It is such a form.
    """
    states = () if form.layout is None else form.layout.states
    if form.new > 1 and any(part.growing is None for part in states) and _Both(trials, form).differ():
        raise ConversionError("its states after several tokens at once are others than after one at a time")


def takes_less_for_one(trials: Trials, form: Form) -> bool:
    """Whether a single token goes a shorter way than several at once, as where these are computed in pieces."""
    step = Step(trials.called, form.layout, form.hidden)
    mask = trials.mask(trials.prompt, left=False)
    counts = []
    for new in (1, form.new):
        more = tokens(trials.called.model, len(trials.prompt), new, seed=5)
        given = trials.step_sample(replace(form, new=new), mask, more)
        with quiet(), torch.no_grad(), CallCounter() as calls:
            step(**given)
        counts.append(calls.count)
    return _SHORTER * counts[0] < counts[1]


_SHORTER = 1.1
"""By how many times: masks alone are a call or two."""


class _Both:
    """Both ways to take some tokens after a prompt.

    Args:
        trials: The model with its sample.
        form: A form that takes several tokens.
    """

    def __init__(self, trials: Trials, form: Form) -> None:
        assert form.layout is not None
        self._trials, self._form, self._states = trials, form, form.layout.states
        self._mask = trials.mask(trials.prompt, left=False)
        self._more = tokens(trials.called.model, len(trials.prompt), form.new, seed=5)
        self._step = Step(trials.called, form.layout, form.hidden)

    def differ(self) -> bool:
        """Whether they do by more than one rounding of the states before explains, in double precision, too."""
        try:
            with quiet(), torch.no_grad():
                return self._differ() and not self._agree_in_double()
        except MODEL_ERRORS:
            return False  # the proof will say why

    def _differ(self) -> bool:
        given = self._given()
        before = {part.past: given[part.past].numpy() for part in self._states}
        singly, at_once = self._singly(before), self._after(given)
        if compare(singly, at_once).ok:
            return False
        noises = sensitivities(self._singly, before, singly)
        return not any(compare(singly, at_once, noise=noise).ok for noise in noises)

    def _agree_in_double(self) -> bool:
        """Whether they agree where rounding decides nothing; they do not if nothing can be said."""
        called = self._trials.called.doubled()
        if called is None:
            return False
        others = {name: _widened(value) for name, value in self._trials.others.items()}
        twin = _Both(replace(self._trials, called=called, others=others), self._form)
        rule = default_tolerance(np.dtype(np.float32))
        try:
            given = twin._given()
            before = {part.past: given[part.past].numpy() for part in self._states}
            return agree(twin._singly(before), twin._after(given), rule)
        except MODEL_ERRORS:  # an operator without double precision
            return False

    def _given(self) -> Inputs:
        """What a step is given for all of the tokens."""
        return self._trials.step_sample(self._form, self._mask, self._more)

    def _after(self, given: Inputs) -> dict[str, Any]:
        """The states after a step."""
        results = self._step(**{name: value.clone() for name, value in given.items()})  # steps change caches in place
        return {part.past: results[part.present].numpy() for part in self._states}

    def _singly(self, before: _States) -> dict[str, Any]:
        """The states after one token and another, from some states on."""
        states = dict(before)
        for at in range(self._form.new):
            one = self._more[:, at : at + 1]
            given = self._given() | self._trials.step_inputs(self._form, extended(self._mask, at), one)
            states = self._after(given | {name: torch.from_numpy(value) for name, value in states.items()})
        return states


def _widened(value: torch.Tensor) -> torch.Tensor:
    return value.double() if value.is_floating_point() else value
