"""A model as it is called: with names for what it takes, and with its results in their roles."""

from __future__ import annotations

import copy
import inspect
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from entrepot.exporters.transformers.roles import Roles
from entrepot.exporters.transformers.upstream import FLAGS, is_pretrained
from entrepot.ir.errors import InputError

_MOST_DOUBLED = 1 << 28
"""Parameters up to this number are copied as doubles."""


@dataclass
class Called:
    """A model as it is called: with names for what it takes, and with its results in their roles.

    Attributes:
        model: The module.
        roles: What is for what.
        origin: The module as its author knows it, where ``model`` calls it in another way.
        told: Whether it is told to return a cache, or does so anyway.
    """

    model: torch.nn.Module
    roles: Roles
    origin: torch.nn.Module | None = None
    told: bool = True

    @property
    def whole(self) -> torch.nn.Module:
        """The module as its author knows it."""
        return self.origin or self.model

    @property
    def name(self) -> str:
        """What reports call it."""
        return type(self.whole).__name__

    def __call__(self, given: Mapping[str, Any]) -> tuple[torch.Tensor, Any]:
        """The scores of tokens, and the cache."""
        positional, named = self._arguments(given)
        result = self.model(*positional, **named, **self.flags)
        return self.logits(result), self.cache(result)

    def _arguments(self, given: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """What is given by position, which is nothing but for a cache that is ``*past``, and what by name."""
        named = dict(given)
        if not self._is_spread:
            return [], named
        parameters = inspect.signature(self.model.forward).parameters
        before = itertools.takewhile(lambda each: each.kind is not each.VAR_POSITIONAL, parameters.values())
        cache = named.pop(str(self.roles.cache), ())
        return [*(named.pop(each.name, each.default) for each in before), *cache], named

    @property
    def _is_spread(self) -> bool:
        parameter = inspect.signature(self.model.forward).parameters.get(str(self.roles.cache))
        return parameter is not None and parameter.kind is parameter.VAR_POSITIONAL

    def doubled(self) -> Called | None:
        """A copy in double precision, in which rounding decides nothing; ``None`` if the module is too large."""
        if sum(parameter.numel() for parameter in self.whole.parameters()) > _MOST_DOUBLED:
            return None
        twin = copy.deepcopy(self)
        twin.whole.double()
        return twin

    def with_cache(self, cache: Any) -> dict[str, Any]:
        """A cache as arguments."""
        roles = self.roles
        return dict(cache) if isinstance(roles.cache, tuple) else {roles.cache: cache}

    @property
    def flags(self) -> dict[str, bool]:
        """What forward is told besides tensors."""
        names = inspect.signature(self.model.forward).parameters
        said = FLAGS if self.told else {}
        return {name: value for name, value in said.items() if name in names or is_pretrained(self.model)}

    def logits(self, result: Any) -> torch.Tensor:
        """The scores of tokens among the results.

        Raises:
            InputError: There are none.
        """
        found = _part(result, self.roles.logits if self.roles.logits != "" else "logits", 0)
        if not isinstance(found, torch.Tensor) or found.dim() != 3:
            raise InputError(
                "the results have no scores of tokens", hint="say where they are: roles=ep.Roles(logits=...)"
            )
        return found

    def cache(self, result: Any) -> Any:
        """The cache among the results; ``None`` if there is none."""
        roles = self.roles
        if not roles.cache:
            return None
        if isinstance(roles.cache, tuple):
            found = {name: _part(result, name, place) for place, name in enumerate(roles.cache, 1)}
            return None if any(value is None for value in found.values()) else found
        if self._is_spread:
            return tuple(result[1:]) if isinstance(result, tuple | list) else None
        return _part(result, roles.cache_result if roles.cache_result != "" else roles.cache, 1)


def _part(result: Any, name: str | int, place: int) -> Any:
    if isinstance(result, torch.Tensor):
        return result if place == 0 else None
    if isinstance(result, Mapping):
        return result.get(name)
    if isinstance(name, str) and hasattr(result, name):
        return getattr(result, name)
    at = name if isinstance(name, int) else place
    return result[at] if isinstance(result, tuple | list) and len(result) > at else None
