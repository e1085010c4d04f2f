"""A model as it is called: what its signature says of its arguments, and where its results are."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from entrepot.exporters.transformers.roles import Roles, Task
from entrepot.exporters.transformers.upstream import CACHES, FLAGS, can_generate, is_pretrained
from entrepot.ir.errors import InputError


def roles_of(model: torch.nn.Module, given: Roles | None = None) -> Roles:
    """The roles of a model's parameters, those that are given first."""
    names = inspect.signature(model.forward).parameters
    decoder = "decoder_" if "decoder_input_ids" in names and "encoder_outputs" in names else ""
    found = {
        "tokens": _first(names, f"{decoder}input_ids", "tokens", "ids") or next(iter(names), ""),
        "mask": "" if decoder else _first(names, "attention_mask", "mask"),
        "positions": "" if decoder else _first(names, "position_ids", "positions"),
        "cache": _first(names, *CACHES) or ("" if is_pretrained(model) else _parts_of_cache(names)),
        "encoder_results": "encoder_outputs" if decoder else "",
    }
    chosen = dataclasses.asdict(given or Roles())
    merged = Roles(**found | {name: value for name, value in chosen.items() if value != ""})
    caches = merged.cache if isinstance(merged.cache, tuple) else (merged.cache,)
    said = (merged.tokens, merged.mask, merged.positions, *caches)
    unknown = [name for name in said if name and name not in names]
    if unknown and not any(each.kind is each.VAR_KEYWORD for each in names.values()):
        raise InputError(f"forward has no parameter '{unknown[0]}'", hint=f"it has {', '.join(names)}")
    return merged


def generates(model: torch.nn.Module, roles: Roles, task: Task) -> bool:
    """Whether a model is one that makes one token after the other."""
    if task != "auto":
        return task == "generate"
    if is_pretrained(model):
        return can_generate(model)
    return bool(roles.cache)


def _parts_of_cache(names: Mapping[str, inspect.Parameter]) -> tuple[str, ...]:
    """Parameters that may be left out, one for each part of a cache, such as ``past_keys`` and ``past_values``."""
    optional = (name for name, parameter in names.items() if parameter.default is None)
    return tuple(name for name in optional if not {*name.split("_")}.isdisjoint(CACHES))


def _first(names: Mapping[str, Any], *wanted: str) -> str:
    return next((name for name in wanted if name in names), "")


@dataclass
class Called:
    """A model as it is called: with names for what it takes, and with its results in their roles.

    Attributes:
        model: The module.
        roles: What is for what.
    """

    model: torch.nn.Module
    roles: Roles

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

    def with_cache(self, cache: Any) -> dict[str, Any]:
        """A cache as arguments."""
        roles = self.roles
        return dict(cache) if isinstance(roles.cache, tuple) else {roles.cache: cache}

    @property
    def flags(self) -> dict[str, bool]:
        """What forward is told besides tensors."""
        names = inspect.signature(self.model.forward).parameters
        return {name: value for name, value in FLAGS.items() if name in names or is_pretrained(self.model)}

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
