"""What the signature of a model, and the names of its parts, say of how it is called."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any

import torch

from entrepot.exporters.transformers.roles import Roles, Task
from entrepot.exporters.transformers.upstream import CACHES, can_generate, is_pretrained
from entrepot.ir.arguments import expected
from entrepot.ir.errors import InputError


def roles_of(model: torch.nn.Module, given: Roles | None = None) -> Roles:
    """The roles of a model's parameters, those that are given first."""
    names = inspect.signature(model.forward).parameters
    decoder = "decoder_" if "decoder_input_ids" in names and "encoder_outputs" in names else ""
    encoder = "" if decoder or is_pretrained(model) else encoder_in(model)
    target = target_in(names) if encoder else ""
    found = {
        "tokens": target or _first(names, f"{decoder}input_ids", "tokens", "ids") or next(iter(names), ""),
        "mask": "" if decoder or target else _first(names, "attention_mask", "mask"),
        "positions": "" if decoder or target else _first(names, "position_ids", "positions"),
        "cache": _first(names, *CACHES) or ("" if is_pretrained(model) else _parts_of_cache(names)),
        "encoder_results": "encoder_outputs" if decoder else "",
        "encoder": encoder if target else "",
    }
    chosen = dataclasses.asdict(given or Roles())
    _check_kinds(chosen)
    merged = Roles(**found | {name: value for name, value in chosen.items() if value != ""})
    caches = merged.cache if isinstance(merged.cache, tuple) else (merged.cache,)
    said = (merged.tokens, merged.mask, merged.positions, *caches)
    unknown = [name for name in said if name and name not in names]
    if unknown and not any(each.kind is each.VAR_KEYWORD for each in names.values()):
        raise InputError(f"forward has no parameter '{unknown[0]}'", hint=f"it has {', '.join(names)}")
    return merged


def _check_kinds(chosen: Mapping[str, Any]) -> None:
    for name, value in chosen.items():
        several = name == "cache" and isinstance(value, tuple) and all(isinstance(each, str) for each in value)
        place = name in ("logits", "cache_result") and isinstance(value, int)
        if not (isinstance(value, str) or several or place):
            raise expected(f"Roles.{name}", "a name", value)


def generates(model: torch.nn.Module, roles: Roles, task: Task) -> bool:
    """Whether a model is one that makes one token after the other."""
    if task != "auto":
        return task == "generate"
    if is_pretrained(model):
        return can_generate(model)
    return bool(roles.cache or roles.encoder)


def _parts_of_cache(names: Mapping[str, inspect.Parameter]) -> tuple[str, ...]:
    """Parameters that may be left out, one for each part of a cache, such as ``past_keys`` and ``past_values``."""
    optional = (name for name, parameter in names.items() if parameter.default is None)
    return tuple(name for name in optional if not {*name.split("_")}.isdisjoint((*CACHES, *_OF_CELLS)))


_OF_CELLS = ("hidden", "hx", "h0", "c0")
"""What parameters for the state of recurrent cells are called, where nothing else is."""


def _first(names: Mapping[str, Any], *wanted: str) -> str:
    return next((name for name in wanted if name in names), "")


def encoder_in(model: torch.nn.Module) -> str:
    """The path of the outermost part that is called an encoder; empty if there is none."""
    paths = [name for name, _ in model.named_modules() if name.rpartition(".")[2] == "encoder"]
    found = min(paths, key=lambda path: path.count("."), default="")
    return found or ("encode" if callable(getattr(model, "encode", None)) else "")


def target_in(names: Mapping[str, inspect.Parameter]) -> str:
    """The parameter for the decoder's tokens, among those of a module that takes what is encoded as well."""
    asked = [name for name, each in names.items() if each.default is each.empty and each.kind in _NAMED]
    tokens = [name for name in asked if _words(name).isdisjoint(_NO_TOKENS)]
    if len(tokens) < _BOTH:
        return ""
    for words in (_TARGETS, _TOKENS):
        for name in tokens:
            if not _words(name).isdisjoint(words):
                return name if words is _TARGETS or name != tokens[0] else tokens[1]
    return tokens[1]


def _words(name: str) -> set[str]:
    return {*name.lower().split("_")}


_BOTH = 2
_NAMED: tuple[Any, ...] = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_NO_TOKENS = {"mask", "padding", "positions", "position", "type", "lengths", "length"}
_TARGETS = {"decoder", "tgt", "trg", "target", "targets", "caption", "captions"}
_TOKENS = {"tokens", "ids", "y"}
