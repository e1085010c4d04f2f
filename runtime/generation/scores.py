"""What is done to the scores of the next token before one is chosen, in the order of Hugging Face's ``generate``."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from entrepot.ir.errors import InputError
from entrepot.runtime.generation.settings import Settings

Array: TypeAlias = np.ndarray[Any, Any]

NEVER = np.float32(-np.inf)


@dataclass(frozen=True)
class Scorer:
    """Adjusts scores of shape ``(rows, vocabulary)``.

    Attributes:
        settings: What is asked for.
        prompt: The length of the prompt.
    """

    settings: Settings
    prompt: int

    def __call__(self, scores: Array, sequences: Array, padding: Array) -> Array:
        """Scores with everything applied that does not depend on chance.

        Args:
            scores: In float32.
            sequences: The tokens so far, of shape ``(rows, length)``.
            padding: How many of the first tokens of each row are padding.
        """
        settings, length = self.settings, sequences.shape[1]
        if settings.repetition_penalty != 1:
            scores = penalised(scores, sequences, padding, settings.repetition_penalty)
        if settings.no_repeat_ngram_size:
            scores = without_repeats(scores, sequences, settings.no_repeat_ngram_size)
        if settings.eos_token_id and length - self.prompt < settings.least(self.prompt):
            scores = suppressed(scores, settings.eos_token_id)
        if settings.forced_bos_token_id is not None and length == 1:
            scores = forced(scores, (settings.forced_bos_token_id,))
        if settings.forced_eos_token_id and length - self.prompt == settings.most(self.prompt) - 1:
            scores = forced(scores, settings.forced_eos_token_id)
        scores = suppressed(scores, settings.suppress_tokens)
        first = self.prompt + (self.prompt == 1 and settings.forced_bos_token_id is not None)
        return suppressed(scores, settings.begin_suppress_tokens) if length == first else scores


def penalised(scores: Array, sequences: Array, padding: Array, penalty: float) -> Array:
    """Make tokens less likely that occurred, padding aside."""
    counted = np.arange(sequences.shape[1]) >= padding[:, None]
    rows, places = np.nonzero(counted & (sequences < scores.shape[1]))
    seen = np.zeros(scores.shape, bool)
    seen[rows, sequences[rows, places]] = True
    factor = np.float32(penalty)
    return np.where(seen, np.where(scores < 0, scores * factor, scores / factor), scores)


def without_repeats(scores: Array, sequences: Array, size: int) -> Array:
    """Forbid tokens that would complete a run of tokens which occurred."""
    length = sequences.shape[1]
    if length < size:
        return scores
    windows = np.lib.stride_tricks.sliding_window_view(sequences, size, axis=1)
    same = (windows[..., :-1] == sequences[:, None, length + 1 - size :]).all(-1)
    rows, places = np.nonzero(same & (windows[..., -1] < scores.shape[1]))
    scores = scores.copy()
    scores[rows, windows[rows, places, -1]] = NEVER
    return scores


def suppressed(scores: Array, tokens: Collection[int]) -> Array:
    """Forbid some tokens."""
    chosen = [token for token in tokens if token < scores.shape[1]]
    if not chosen:
        return scores
    scores = scores.copy()
    scores[:, chosen] = NEVER
    return scores


def forced(scores: Array, tokens: Collection[int]) -> Array:
    """Forbid all but some tokens.

    Raises:
        InputError: There is no such token.
    """
    if max(tokens) >= scores.shape[1]:
        raise InputError(f"token {max(tokens)} is to be forced, there are {scores.shape[1]} tokens")
    result = np.full_like(scores, NEVER)
    result[:, list(tokens)] = 0
    return result


def warped(scores: Array, settings: Settings, keep: int = 1) -> Array:
    """Scores from which a token is drawn: by temperature, the most likely ones, those with most of the probability.

    Args:
        scores: In float32.
        settings: What is asked for.
        keep: The fewest tokens that stay possible.

    Raises:
        InputError: There is a row in which nothing can be drawn.
    """
    if not np.isfinite(scores.max(1)).all():
        raise InputError(
            "no token can be drawn: every one is forbidden, or scores are no numbers",
            hint="see suppress_tokens, no_repeat_ngram_size and the inputs",
        )
    scores = scores / np.float32(settings.temperature)
    most = min(max(settings.top_k, keep), scores.shape[1])
    if settings.top_k and most < scores.shape[1]:
        least = np.partition(scores, -most, axis=1)[:, -most, None]
        scores = np.where(scores < least, NEVER, scores)
    return scores if settings.top_p >= 1 else _nucleus(scores, settings.top_p, keep)


def _nucleus(scores: Array, share: float, keep: int) -> Array:
    order = np.argsort(scores, axis=1, kind="stable")
    rising = np.take_along_axis(scores, order, 1)
    unlikely = np.cumsum(softmax(rising), 1) <= 1 - share
    unlikely[:, -keep:] = False
    scores = scores.copy()
    rows, places = np.nonzero(unlikely)
    scores[rows, order[rows, places]] = NEVER
    return scores


def softmax(scores: Array) -> Array:
    """Probabilities, along the last axis."""
    shifted = np.exp(scores - scores.max(-1, keepdims=True))
    return shifted / shifted.sum(-1, keepdims=True)


def log_softmax(scores: Array) -> Array:
    """Logarithms of probabilities, along the last axis."""
    shifted = scores - scores.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def drawn(scores: Array, uniform: Array) -> Array:
    """A token for each row, by its probability and a number between 0 and 1."""
    total = np.cumsum(softmax(scores.astype(np.float64)), 1)
    return (total <= uniform[:, None] * total[:, -1:]).sum(1)
