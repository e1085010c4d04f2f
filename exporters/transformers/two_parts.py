"""Modules with an encoder in them, in place of one that takes its results: as a whole they take all there is.

What the encoder returns is kept with the cache, and in later calls it stands in for the encoder. So the rest of the
package treats it as it treats whatever else only an encoder determines.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import torch

from entrepot.exporters.torch.running.errors import MODEL_ERRORS
from entrepot.exporters.torch.running.guard import quiet
from entrepot.exporters.transformers.caches import apart
from entrepot.exporters.transformers.called import Called
from entrepot.exporters.transformers.roles import Roles
from entrepot.exporters.transformers.upstream import encoder_path, encoder_results
from entrepot.ir.errors import InputError

CARRIED = "encoder's results and cache"
"""The argument and the result for both, a name that no parameter can have."""

_NAME_IT = "name its encoder: roles=ep.Roles(encoder=...)"


class TwoParts(torch.nn.Module):
    """A module whose encoder runs in the first call alone.

    Args:
        called: The module; its roles name the encoder.
        vocabulary: How many tokens it scores.
    """

    def __init__(self, called: Called, vocabulary: int) -> None:
        super().__init__()
        self.model = called.model
        self.config = SimpleNamespace(vocab_size=vocabulary)
        self.name = type(called.model).__name__
        self.generation_config = getattr(called.model, "generation_config", None)
        self._called = called

    @property
    def roles(self) -> Roles:
        """What its own arguments are for."""
        return Roles(tokens=self._called.roles.tokens, cache=CARRIED, encoder=self._called.roles.encoder)

    def forward(self, **given: Any) -> dict[str, Any]:
        """The scores of tokens, and what goes on to the next call."""
        carried: Mapping[str, Any] = given.pop(CARRIED, None) or {}
        arguments = given
        if "cache" in carried:
            arguments |= self._called.with_cache(carried["cache"])
        results = [carried["memory"]] if carried else []
        with _standing_in(self.model, self._called.roles.encoder, results, known=bool(carried)):
            logits, cache = self._called(arguments)
        if len(results) != 1:
            raise InputError(
                f"a call of the module calls '{self._called.roles.encoder}' {len(results)} times, expected once",
                hint=_NAME_IT,
            )
        return {"logits": logits, CARRIED: {"memory": results[0]} | ({} if cache is None else {"cache": cache})}


def called_in_steps(called: Called, given: Mapping[str, torch.Tensor]) -> Called:
    """The model as it is called step by step: as it is, unless its encoder has to be told from the rest.

    Raises:
        InputError: There is no such encoder, or its results are no scores.
    """
    path = called.roles.encoder
    if called.roles.encoder_results:
        for way in (called, replace(called, told=False)):
            if _takes_results(way, given):
                return way
        path = encoder_path(called.model)
    if not path:
        return called
    called = replace(called, roles=replace(called.roles, encoder=path, encoder_results=""))
    with quiet(), torch.no_grad():
        scores, _ = called(given)
    parts = TwoParts(called, scores.shape[-1]).eval()
    with quiet(), torch.no_grad():
        parts(**given)
    return Called(parts, parts.roles, origin=called.model)


def _takes_results(called: Called, given: Mapping[str, torch.Tensor]) -> bool:
    """Whether it takes nothing of its encoder's results but the last of them."""
    with quiet(), torch.no_grad():
        try:
            result = called.model(**given, **called.flags)
            stand_in = encoder_results(result["encoder_last_hidden_state"])
            more = {name: value for name, value in given.items() if name in (called.roles.tokens, "attention_mask")}
            called({**more, called.roles.encoder_results: stand_in})
        except MODEL_ERRORS:
            return False
    return True


@contextlib.contextmanager
def _standing_in(model: torch.nn.Module, path: str, results: list[Any], *, known: bool) -> Iterator[None]:
    """Let the results stand in for what a part computes, or note them there if they are not known."""
    owner, name = _place(model, path)
    original = getattr(owner, name)
    own = vars(owner).get(name)

    def noted(*arguments: Any, **named: Any) -> Any:
        results.append(original(*arguments, **named))
        return results[-1]

    setattr(owner, name, (lambda *_, **__: results[0]) if known else noted)
    try:
        yield
    finally:
        delattr(owner, name)
        if own is not None:
            setattr(owner, name, own)


def _place(model: torch.nn.Module, path: str) -> tuple[Any, str]:
    """Whose attribute a part is called by: a module's ``forward``, or a method."""
    above, _, name = path.rpartition(".")
    try:
        owner = model.get_submodule(above)
        part: Any = getattr(owner, name)
    except AttributeError:
        raise InputError(f"the module has no part '{path}'", hint=_NAME_IT) from None
    if not callable(part):
        raise InputError(f"'{path}' of the module is no part that can be called", hint=_NAME_IT)
    return (part, "forward") if isinstance(part, torch.nn.Module) else (owner, name)


def memory_alone(carried: Mapping[str, Any]) -> dict[str, Any]:
    """What goes on to the next call, without a cache."""
    return {"memory": carried["memory"]}


def same_memory(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether the encoder gave the same results in two calls."""
    before, after = (apart(each["memory"]).tensors for each in (one, other))
    return len(before) == len(after) and all(
        a.shape == b.shape and torch.equal(a, b) for a, b in zip(before, after, strict=True)
    )
