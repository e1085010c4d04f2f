"""Rows of two batches as one batch: those with fewer tokens get padding on the left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from entrepot.ir.errors import InputError
from entrepot.runtime.generation.manifest import Manifest, State

Array: TypeAlias = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Rows:
    """Rows with what belongs to them, on the host.

    Attributes:
        tokens: Their tokens so far.
        mask: Which of them count.
        logits: The scores of the next ones.
        states: What goes from step to step, by input.
        constants: What every step is given, by input.
    """

    tokens: Array
    mask: Array
    logits: Array
    states: Mapping[str, Array]
    constants: Mapping[str, Array]


def joined(manifest: Manifest, one: Rows, other: Rows) -> Rows:
    """The rows of both, in this order.

    Raises:
        InputError: They have different numbers of tokens and the model takes no padding, or the encoder was given
            something of another size.
    """
    length = max(one.tokens.shape[1], other.tokens.shape[1])
    first, second = (_widened(manifest, rows, length) for rows in (one, other))
    return Rows(
        np.concatenate([first.tokens, second.tokens]),
        np.concatenate([first.mask, second.mask]),
        np.concatenate([first.logits, second.logits]),
        {each.past: _both(first.states, second.states, each.past, each.batch) for each in manifest.states},
        {
            name: _both(first.constants, second.constants, name, manifest.constants.get(name, 0))
            for name in first.constants
        },
    )


def _both(one: Mapping[str, Array], other: Mapping[str, Array], name: str, axis: int) -> Array:
    ours, theirs = one[name], other[name]
    if np.delete(ours.shape, axis).tolist() != np.delete(theirs.shape, axis).tolist():
        raise InputError(
            f"'{name}' has shape {ours.shape} in one batch and {theirs.shape} in the other",
            hint="pad what the encoder is given to one length",
        )
    return np.concatenate([ours, theirs], axis)


def _widened(manifest: Manifest, rows: Rows, length: int) -> Rows:
    """The rows with padding before their tokens, up to a length."""
    more = length - rows.tokens.shape[1]
    if not more:
        return rows
    if manifest.kind != "decoder" or not manifest.mask or (manifest.mask_of != "all" and not manifest.step):
        raise InputError(
            f"rows of {length - more} tokens cannot join rows of {length}: the model takes no padding",
            hint="join when both have the same number of tokens",
        )
    before = ((0, 0), (more, 0))
    states = {each.past: _moved_on(rows.states[each.past], each, more, manifest.capacity) for each in manifest.states}
    return Rows(np.pad(rows.tokens, before), np.pad(rows.mask, before), rows.logits, states, rows.constants)


def _moved_on(value: Array, state: State, more: int, capacity: int) -> Array:
    """A state with places before those of its tokens, which nobody looks at; one that does not grow as it is."""
    growing = next((axis for axis, size in enumerate(state.shape) if size in (0, capacity or 0)), None)
    if growing is None:
        return value
    room = np.zeros([more if axis == growing else size for axis, size in enumerate(value.shape)], value.dtype)
    moved = np.concatenate([room, value], growing)
    return moved.take(range(capacity), growing) if capacity else moved
