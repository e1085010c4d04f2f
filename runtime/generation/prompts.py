"""What a decoder begins with: the tokens and the mask of a prompt, or the token that decoding begins with."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeAlias

import numpy as np

from entrepot.ir.errors import InputError
from entrepot.runtime.arrays import as_array
from entrepot.runtime.generation.inputs import as_mask, as_tokens, default_mask
from entrepot.runtime.generation.manifest import Manifest

Array: TypeAlias = np.ndarray[Any, Any]


def prompted(manifest: Manifest, given: dict[str, Any], names: Collection[str]) -> tuple[Array, Array]:
    """The tokens of a prompt and which of them count, taken out of what is given.

    Args:
        manifest: What the package says of itself.
        given: The inputs, to which masks are added that nobody gave.
        names: What the package takes.

    Raises:
        InputError: They are missing, or of another shape.
    """
    check_source(manifest, given, names)
    tokens = as_tokens(_tokens(manifest, given), f"'{manifest.tokens}'")
    if tokens.ndim != 2 or not tokens.size:
        raise InputError(f"'{manifest.tokens}' has shape {tokens.shape}, expected rows of at least one token")
    mask = given.pop(manifest.mask) if manifest.mask in given else default_mask(tokens, manifest.settings)
    return tokens, as_mask(mask, tokens.shape, manifest.mask or "the mask", manifest.tokens)


def check_source(manifest: Manifest, given: dict[str, Any], names: Collection[str]) -> None:
    """Hold a text for an encoder to what a prompt is held to; where nobody says which tokens count, it is said here.

    Raises:
        InputError: They are no tokens, or the mask is none of them.
    """
    source, mask = given.get(manifest.source), manifest.source_mask
    if source is None:
        return
    is_text = source.dtype.kind in "iu"
    tokens = as_tokens(source, f"'{manifest.source}'") if is_text else source
    if mask in names and mask not in given:
        given[mask] = default_mask(tokens, manifest.settings)
    elif mask in names and is_text:
        given[mask] = as_mask(given[mask], tokens.shape, mask, manifest.source)


def begun(manifest: Manifest, given: dict[str, Any], start: int | None) -> dict[str, Any]:
    """The inputs, with the token that decoding begins with before a prompt that lacks it, as transformers does."""
    name = manifest.tokens
    if manifest.kind != "encoder-decoder" or start is None:
        return given
    if given.get(name) is None:
        return given | {name: _starts(manifest, given, start)}
    tokens = np.asarray(as_array(given[name]))
    if tokens.ndim != 2 or not tokens.size or (tokens[:, 0] == start).any():
        return given
    return given | {name: np.concatenate([np.full_like(tokens[:, :1], start), tokens], 1)}


def _tokens(manifest: Manifest, given: dict[str, Any]) -> Array:
    if manifest.tokens in given:
        return np.asarray(given.pop(manifest.tokens))
    if manifest.kind == "decoder":
        raise InputError(f"'{manifest.tokens}' is missing", hint="give the prompt as an array of tokens")
    start = manifest.settings.decoder_start_token_id
    if start is None:
        raise InputError(
            f"'{manifest.tokens}' is missing, and nothing says what decoding begins with",
            hint="give it, or decoder_start_token_id",
        )
    return _starts(manifest, given, start)


def _starts(manifest: Manifest, given: Mapping[str, Any], start: int) -> Array:
    """One token for each row, of which there are as many as the encoder is given."""
    first = given.get(manifest.source)
    if first is None:
        raise InputError(f"'{manifest.source}' is missing", hint="the encoder takes it")
    array = np.asarray(as_array(first))
    if not array.ndim:
        raise InputError(f"'{manifest.source}' is a single number", hint="give rows")
    return np.full((len(array), 1), start, np.int64)
