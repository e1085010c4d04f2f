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

    def __call__(self, scores: Array, sequences: Array, padding: Array, source: Array | None = None) -> Array:
        """Scores with everything applied that does not depend on chance.

        Args:
            scores: In float32.
            sequences: The tokens so far, of shape ``(rows, length)``.
            padding: How many of the first tokens of each row are padding.
            source: The tokens that an encoder was given, or the prompts.
        """
        settings, length = self.settings, sequences.shape[1]
        scores = self._by_words(scores, sequences, padding, source)
        if settings.eos_token_id and length - self.prompt < settings.least(self.prompt):
            scores = suppressed(scores, settings.eos_token_id)
        if settings.forced_bos_token_id is not None and length == 1:
            scores = forced(scores, (settings.forced_bos_token_id,))
        if settings.forced_eos_token_id and length - self.prompt == settings.most(self.prompt) - 1:
            scores = forced(scores, settings.forced_eos_token_id)
        if settings.remove_invalid_values:
            scores = np.nan_to_num(scores)
        if settings.exponential_decay_length_penalty is not None and settings.eos_token_id:
            scores = urged(
                scores, settings.eos_token_id, settings.exponential_decay_length_penalty, length - self.prompt
            )
        scores = suppressed(scores, settings.suppress_tokens)
        first = self.prompt + (self.prompt == 1 and settings.forced_bos_token_id is not None)
        return suppressed(scores, settings.begin_suppress_tokens) if length == first else scores

    def _by_words(self, scores: Array, sequences: Array, padding: Array, source: Array | None) -> Array:
        """What depends on the tokens that occurred."""
        settings = self.settings
        scores = biased(scores, sequences, settings.sequence_bias)
        if settings.encoder_repetition_penalty != 1 and source is not None:
            scores = penalised(scores, source, np.zeros(len(source)), 1 / settings.encoder_repetition_penalty)
        if settings.repetition_penalty != 1:
            scores = penalised(scores, sequences, padding, settings.repetition_penalty)
        if settings.no_repeat_ngram_size:
            scores = without_repeats(scores, sequences, sequences, settings.no_repeat_ngram_size)
        if settings.encoder_no_repeat_ngram_size and source is not None:
            scores = without_repeats(scores, sequences, source, settings.encoder_no_repeat_ngram_size)
        ends = {(token,) for token in settings.eos_token_id}  # which transformers does not forbid so
        return biased(scores, sequences, [(word, float(NEVER)) for word in settings.bad_words_ids if word not in ends])


def penalised(scores: Array, sequences: Array, padding: Array, penalty: float) -> Array:
    """Make tokens less likely that occurred, padding aside."""
    counted = np.arange(sequences.shape[1]) >= padding[:, None]
    rows, places = np.nonzero(counted & (sequences < scores.shape[1]))
    seen = np.zeros(scores.shape, bool)
    seen[rows, sequences[rows, places]] = True
    factor = np.float32(penalty)
    return np.where(seen, np.where(scores < 0, scores * factor, scores / factor), scores)


def without_repeats(scores: Array, sequences: Array, among: Array, size: int) -> Array:
    """Forbid tokens that would complete a run of tokens which occurs among some."""
    length = sequences.shape[1]
    if min(length + 1, among.shape[1]) < size:
        return scores
    windows = np.lib.stride_tricks.sliding_window_view(among, size, axis=1)
    same = (windows[..., :-1] == sequences[:, None, length + 1 - size :]).all(-1)
    rows, places = np.nonzero(same & (windows[..., -1] < scores.shape[1]))
    scores = scores.copy()
    scores[rows, windows[rows, places, -1]] = NEVER
    return scores


def biased(scores: Array, sequences: Array, biases: Collection[tuple[tuple[int, ...], float]]) -> Array:
    """Add something to the score of the last token of a run where the others came before.

    Raises:
        InputError: There is no such token.
    """
    if not biases:
        return scores
    most = max(max(word) for word, _ in biases)
    if most >= scores.shape[1]:
        raise InputError(f"token {most} is to be biased or forbidden, there are {scores.shape[1]} tokens")
    total = np.zeros_like(scores)
    for (*before, last), value in biases:
        start = sequences.shape[1] - len(before)
        if start >= 0:
            total[(sequences[:, start:] == before).all(1), last] += np.float32(value)
    return scores + total


def urged(scores: Array, ends: tuple[int, ...], decay: tuple[int, float], new: int) -> Array:
    """Make the end of a row more likely from some number of new tokens on."""
    start, factor = decay
    if new <= start:
        return scores
    scores, found = scores.copy(), scores[:, list(ends)]
    more = np.abs(found) * np.float32(factor ** (new - start) - 1)
    scores[:, list(ends)] = found + np.where(np.isfinite(found), more, np.float32(0))
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


def softmax(scores: Array) -> Array:
    """Probabilities, along the last axis."""
    shifted = np.exp(scores - scores.max(-1, keepdims=True))
    return shifted / shifted.sum(-1, keepdims=True)


def log_softmax(scores: Array) -> Array:
    """Logarithms of probabilities, along the last axis."""
    shifted = scores - scores.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
