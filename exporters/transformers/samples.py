"""Inputs of a model, made from its signature and its configuration where a caller gives none."""

from __future__ import annotations

import inspect
from typing import Any

import torch

from entrepot.exporters.sample import Sample
from entrepot.exporters.torch.running.errors import MODEL_ERRORS
from entrepot.exporters.torch.running.guard import quiet
from entrepot.exporters.transformers.guesses import BATCH, LENGTH, Inputs, guesses, padded, tokens
from entrepot.exporters.transformers.roles import Roles
from entrepot.ir.arguments import expected
from entrepot.ir.errors import InputError


def sample_of(model: torch.nn.Module, roles: Roles, given: Any, *, generates: bool) -> Inputs:
    """What a model is called with: what the caller gives, or the first of our guesses that it accepts.

    Raises:
        InputError: What is given does not fit, or no guess does.
    """
    if given is not None:
        return _accepted(model, roles, _named(model, given))
    refusals = []
    for guess in guesses(model, roles, generates=generates):
        refusal = _refusal(model, guess)
        if not refusal:
            return guess
        refusals.append(refusal)
    why = f": {refusals[0]}" if refusals else ""
    raise InputError(f"no inputs could be made for {type(model).__name__}{why}", hint="give samples={'input_ids': ...}")


def roomy(model: torch.nn.Module, roles: Roles, given: Inputs) -> Inputs:
    """The inputs as they tell most: no row or token alone, since axes of size 1 tell nothing, and a text with a mask.

    Whatever the model does not take so stays as it is.
    """
    rows = {name: torch.cat([value] * BATCH) if len(value) == 1 else value for name, value in given.items()}
    longer = rows
    if all(value.dim() == _ROWS and not value.is_floating_point() for value in given.values()):
        longer = {name: value.repeat(1, LENGTH) if value.shape[1] == 1 else value for name, value in rows.items()}
    candidates = (_masked(model, roles, longer), longer, rows)
    return next((each for each in candidates if each.keys() and _takes(model, each, given)), given)


_ROWS = 2
"""The rank of texts."""


def _masked(model: torch.nn.Module, roles: Roles, given: Inputs) -> Inputs:
    """With a mask for what an encoder reads, if it takes one: else padding would be read like any other token."""
    names, text, mask = inspect.signature(model.forward).parameters, given.get("input_ids"), "attention_mask"
    if not roles.encoder_results or mask not in names or mask in given or text is None:
        return given
    return given | {mask: padded(torch.ones_like(text), left=False)}


def _takes(model: torch.nn.Module, inputs: Inputs, known: Inputs) -> bool:
    if inputs.keys() == known.keys() and all(value is known[name] for name, value in inputs.items()):
        return True
    return not _refusal(model, inputs)


def _named(model: torch.nn.Module, given: Any) -> Inputs:
    sample = Sample.of(given, model.forward)
    try:
        bound = inspect.signature(model.forward).bind(*sample.args, **sample.kwargs)
    except TypeError as error:
        raise InputError(f"the samples do not fit forward: {error}") from error
    arguments = dict(bound.arguments)
    for name, parameter in bound.signature.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            arguments |= arguments.pop(name, {})
    return {name: _tensor(value, name) for name, value in arguments.items() if value is not None}


def _accepted(model: torch.nn.Module, roles: Roles, given: Inputs) -> Inputs:
    """The samples, once the model has taken them; tokens for its decoder, which generation brings, may be missing."""
    calls = [given]
    if roles.has_encoder and roles.tokens not in given:
        batch = next((len(value) for value in given.values() if value.dim()), BATCH)
        calls.insert(0, given | {roles.tokens: tokens(model, batch, LENGTH)})
    refusals = []
    for call in calls:
        if not (refusal := _refusal(model, call)):
            return given
        refusals.append(refusal)
    raise InputError(
        f"{type(model).__name__} does not take the samples: {refusals[0]}",
        hint="call the model with them once to see the whole traceback",
    )


def _refusal(model: torch.nn.Module, inputs: Inputs) -> str:
    """What a model says of inputs that it does not take; empty if it does."""
    try:
        with quiet(), torch.no_grad():
            model(**inputs)
    except MODEL_ERRORS as error:
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return ""


def _tensor(value: Any, name: str) -> torch.Tensor:
    """A sample as a tensor with axes and elements, which a size can be read from.

    Raises:
        InputError: It is something else.
    """
    if isinstance(value, bool | str):
        raise expected(f"sample '{name}'", "a tensor", value, hint="leave it out: what is no tensor is never an input")
    try:
        found = torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise expected(f"sample '{name}'", "a tensor", value) from error
    if not found.numel():
        raise InputError(f"sample '{name}' has shape {tuple(found.shape)}, expected at least one element")
    return found
