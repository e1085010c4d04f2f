"""One token after the other: the most likely one, or one that is drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from entrepot.ir.errors import InputError
from entrepot.runtime.arrays import as_array
from entrepot.runtime.generation.decoding import Decoding
from entrepot.runtime.generation.draws import any_seed, uniform
from entrepot.runtime.generation.scores import Scorer
from entrepot.runtime.generation.settings import Settings
from entrepot.runtime.generation.warping import drawn, warped

Array: TypeAlias = np.ndarray[Any, Any]

Stopping: TypeAlias = Callable[[Array], Any]
"""Given all tokens of the rows that are left; whether to stop, for all or for each of them."""

Streamer: TypeAlias = Callable[[Array], Any]
"""Given the new token of every row of the batch, those of finished rows being padding."""


def padding_of(mask: Array) -> Array:
    """How many of the first tokens of each row are padding."""
    return np.argmax(mask != 0, axis=1)


def stopped(stopping: Stopping, rows: Array) -> Array:
    """Which rows a caller wants to end.

    Raises:
        InputError: The answer is neither one for all rows nor one for each.
    """
    said = stopping(rows)
    answer = np.asarray(False if said is None else as_array(said))
    if answer.dtype.kind not in "biu" or answer.shape not in ((), (len(rows),)):
        found = f"{answer.dtype} of shape {answer.shape}"
        raise InputError(f"stopping returned {found}, expected True or False, or one for each of {len(rows)} rows")
    return np.broadcast_to(answer != 0, len(rows))


def search(
    decoding: Decoding, settings: Settings, stopping: Stopping | None = None, streamer: Streamer | None = None
) -> Array:
    """All tokens of all rows, prompts first; rows that finish leave the batch and are filled with padding."""
    prompt = decoding.tokens.shape[1]
    score = Scorer(settings, prompt)
    choose = _chooser(settings)
    rows, padding, new = np.arange(decoding.rows), padding_of(decoding.mask), []
    result = decoding.tokens.copy()
    for at in range(settings.most(prompt)):
        tokens = choose(score(decoding.logits, decoding.tokens, padding, decoding.source), at, rows)
        column = np.full(len(result), settings.pad, result.dtype)
        column[rows] = tokens
        new.append(column)
        if streamer is not None:
            streamer(column)
        going = ~np.isin(tokens, settings.eos_token_id)
        if stopping is not None:
            going &= ~stopped(stopping, np.column_stack([decoding.tokens, tokens]))
        if not going.any() or at + 1 == settings.most(prompt):
            break
        if not going.all():
            decoding.select(np.nonzero(going)[0])
            rows, padding, tokens = rows[going], padding[going], tokens[going]
        decoding.step(tokens)
    return np.column_stack([result, *new]) if new else result


def _chooser(settings: Settings) -> Callable[[Array, int, Array], Array]:
    """Given scores, the number of the turn and those of the rows; the token of each row."""
    if not settings.do_sample:
        return lambda scores, _, __: scores.argmax(1)
    seed = any_seed() if settings.seed is None else settings.seed
    return lambda scores, turn, rows: drawn(warped(scores, settings), uniform(seed, turn, rows))
