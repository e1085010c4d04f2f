"""One graph that generates by itself: what a call says becomes its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from entrepot.ir.errors import InputError
from entrepot.runtime.generation.draws import any_seed
from entrepot.runtime.generation.inputs import as_mask, as_tokens, default_mask
from entrepot.runtime.generation.manifest import Manifest
from entrepot.runtime.generation.prompts import check_source
from entrepot.runtime.generation.settings import padded_ends
from entrepot.runtime.session import Session

Array: TypeAlias = np.ndarray[Any, Any]


def whole(
    session: Session, manifest: Manifest, feeds: dict[str, Any], chosen: Mapping[str, Any], *, new_only: bool
) -> Array:
    """What the graph of a loop generates.

    Args:
        session: Runs it.
        manifest: What the package says of itself.
        feeds: The model's inputs.
        chosen: Settings, as the call says them.
        new_only: Whether the prompts are left out of the result.

    Raises:
        InputError: The graph has no input for a setting.
    """
    defaults = session.model.ir.graph.initializers
    said = {name: value for name, value in chosen.items() if name in defaults}
    lost = [name for name in chosen if name not in said and chosen[name] != getattr(manifest.settings, name)]
    if lost:
        raise InputError(f"this loop in the graph has no input for {lost[0]}", hint="export with loop='host'")
    names = {spec.name for spec in session.inputs}
    check_source(manifest, feeds, names)
    if manifest.tokens in feeds:
        tokens = as_tokens(feeds[manifest.tokens], f"'{manifest.tokens}'")
        feeds[manifest.tokens] = tokens
        if manifest.mask in names:
            mask = feeds.get(manifest.mask, default_mask(tokens, manifest.settings))
            feeds[manifest.mask] = as_mask(mask, tokens.shape, manifest.mask, manifest.tokens)
    prompt = feeds[manifest.tokens].shape[1] if manifest.tokens in feeds else 1
    sequences: Array = session.run(feeds | _settings(manifest, said, defaults, prompt))["sequences"]
    return sequences[:, prompt:] if new_only else sequences


def _settings(
    manifest: Manifest, said: Mapping[str, Any], defaults: Mapping[str, Any], prompt: int
) -> dict[str, Array]:
    """The settings of a call as inputs; the graph has defaults for the others."""
    changed = manifest.settings.changed(said)
    feeds = {
        name: np.asarray(getattr(changed, name), defaults[name].dtype.numpy())
        for name in said
        if name != "eos_token_id"
    }
    if "seed" in defaults and changed.seed is None:
        feeds["seed"] = np.asarray(any_seed(), np.int64)
    if "eos_token_id" in said:
        feeds["eos_token_id"] = padded_ends(changed.eos_token_id)
        feeds["pad_token_id"] = np.asarray(changed.pad, np.int64)
    if "max_new_tokens" not in said and manifest.settings.max_new_tokens is None:
        feeds["max_new_tokens"] = np.asarray(manifest.settings.most(prompt), np.int64)
    return feeds
