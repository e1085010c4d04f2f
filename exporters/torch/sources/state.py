"""The state that forward changes, as inputs and outputs, or as it is before the first call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from entrepot.exporters.structure import Flat, Tree, constants, flatten, flatten_again, unflatten
from entrepot.exporters.torch.arrays import TORCH
from entrepot.exporters.torch.running.eager import Eager, same_results
from entrepot.exporters.torch.running.guard import ModuleState
from entrepot.exporters.torch.running.stepping import STATE, Place, Stepper
from entrepot.ir.errors import ConversionError


def found_stepper(eager: Eager, call: Flat, state: ModuleState, *, returned: bool) -> Stepper | None:
    """What calls the module with its state, or ``None`` if forward changes nothing that matters.

    Args:
        eager: The module as it is called.
        call: The sample.
        state: The module as it was.
        returned: Whether state is to be taken and returned, or kept as it is.

    Raises:
        Refusal: The module does not take the sample.
        ConversionError: Results depend on state that is no tensor.
    """
    with state.keeping():
        eager(call.tensors, restore=False)
    changed = state.changed()
    after = {place.name: place.holder(eager.module).get(place.key) for place in changed}
    later = flatten(after, arrays=TORCH)
    later.tensors = [tensor.clone() for tensor in later.tensors]
    state.restore()
    if not changed:
        return None
    trial = _Trial(Stepper(eager.module, changed), call, state, later)
    kept = [place for place in changed if trial.matters(place)]
    if returned:
        _check_numbers(trial.initial.tree, later.tree, kept)
    if not kept:
        return None
    stepper = Stepper(eager.module, kept, returned=returned)
    stepper.changing = _changing(trial.initial, later, kept)
    return stepper


def with_state(call: Flat, stepper: Stepper) -> Flat:
    """The sample of a module together with its state."""
    args, kwargs = unflatten(call.tree, call.tensors)
    return flatten_again(call.tree, args, {**kwargs, STATE: stepper.values()}, TORCH)


class _Trial:
    """Calls a module from a state that is partly later than it is."""

    def __init__(self, stepper: Stepper, call: Flat, state: ModuleState, later: Flat) -> None:
        self._stepper, self._call, self._state, self._later = stepper, call, state, later
        self.initial = flatten(stepper.values(), arrays=TORCH)

    def matters(self, place: Place) -> bool:
        """Whether anything else comes out when one place has a later value; a number that only counts does not."""
        first, second = self._run({}), self._run({place.name: _copy(self._later)[place.name]})
        return not same_results(_without(place, first), _without(place, second))

    def _run(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        args, kwargs = _copy(self._call)
        with torch.random.fork_rng():
            result = self._stepper(*args, **{**kwargs, STATE: {**_copy(self.initial), **changes}})
        self._state.restore()
        return {**result}


def _without(place: Place, result: dict[str, Any]) -> Flat:
    """A result without what became of a place, if that is no tensor."""
    own = flatten(result[place.name], arrays=TORCH)
    return flatten({key: value for key, value in result.items() if own.tensors or key != place.name}, arrays=TORCH)


def _copy(flat: Flat) -> Any:
    return unflatten(flat.tree, [tensor.clone() for tensor in flat.tensors])


def _check_numbers(before: Tree, after: Tree, kept: list[Place]) -> None:
    now = {place.name: place.value for place in constants(after)}
    names = {place.name for place in kept}
    for place in constants(before):
        if place.name in names and place.value is not None and now.get(place.name) != place.value:
            raise ConversionError(
                f"forward changes '{place.name}', and its results depend on it, but it is no tensor: {place.value!r}",
                value=place.name,
                hint="keep it in a buffer, as a tensor",
            )


def _changing(before: Flat, after: Flat, kept: list[Place]) -> list[str]:
    """The places that have other tensors after a call than before it."""
    first, second = _copy(before), _copy(after)
    return [place.name for place in kept if _names(place, first) != _names(place, second)]


def _names(place: Place, values: dict[str, Any]) -> list[str]:
    return list(flatten({place.name: values[place.name]}, arrays=TORCH).names)
