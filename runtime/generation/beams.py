"""Beam search as Hugging Face does it: finished and running beams apart, twice as many candidates as beams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from entrepot.ir.errors import InputError
from entrepot.runtime.generation.decoding import Decoding
from entrepot.runtime.generation.scores import Scorer, log_softmax, softmax
from entrepot.runtime.generation.search import Stopping, padding_of, stopped
from entrepot.runtime.generation.settings import Settings
from entrepot.runtime.generation.warping import warped

Array: TypeAlias = np.ndarray[Any, Any]

_WORST = np.float32(-1e9)
_MOST_POWER = 80
"""Up to this logarithm, powers are numbers in single precision."""
_NARROW = 256
"""Scores up to this number are sorted at once."""


@dataclass
class Beams:
    """Sequences with their scores, the best first.

    Attributes:
        tokens: Of shape ``(batch, beams, length)``.
        scores: Sums of logarithms of probabilities; of finished beams divided for their length.
        done: Which of them are finished.
        lengths: How many new tokens each has.
    """

    tokens: Array
    scores: Array
    done: Array
    lengths: Array

    def chosen(self, places: Array) -> Beams:
        """Some of the beams, by their places in each row."""
        return Beams(
            np.take_along_axis(self.tokens, places[..., None], 1),
            np.take_along_axis(self.scores, places, 1),
            np.take_along_axis(self.done, places, 1),
            np.take_along_axis(self.lengths, places, 1),
        )


class BeamSearch:
    """One search; ``decoding`` has run the prompts, one row for each.

    Args:
        decoding: The batch; its rows are repeated for the beams.
        settings: How to search.
        stopping: Given all candidates; whether each of them ends.
    """

    def __init__(self, decoding: Decoding, settings: Settings, stopping: Stopping | None = None) -> None:
        self._decoding, self._settings, self._stopping = decoding, settings, stopping
        self._batch, self._prompt = decoding.tokens.shape
        self._count = settings.num_beams
        self._candidates = max(2, 1 + len(settings.eos_token_id)) * self._count
        self._most = settings.most(self._prompt)
        if self._most > 1 and abs(settings.length_penalty) * np.log(self._most) > _MOST_POWER:
            raise InputError(
                f"length_penalty is {settings.length_penalty}, whose powers of {self._most} tokens are no numbers",
                hint="0 is for no penalty, 1 for the mean score of a token",
            )
        if decoding.logits.shape[1] * self._count < self._candidates:
            raise InputError(
                f"{self._count} beams have {decoding.logits.shape[1] * self._count} continuations, of which a search "
                f"looks at {self._candidates}",
                hint="num_beams=1 takes any number of tokens to choose from",
            )
        self._random = np.random.default_rng(settings.seed)
        decoding.select(np.repeat(np.arange(self._batch), self._count))
        self._padding = padding_of(decoding.mask)
        self._score = Scorer(settings, self._prompt)
        tokens = np.full(
            (self._batch, self._count, self._prompt + self._most), _filler(settings), decoding.tokens.dtype
        )
        tokens[:, :, : self._prompt] = decoding.tokens.reshape(self._batch, self._count, -1)
        shape = self._batch, self._count
        first = np.where(np.arange(self._count) == 0, np.float32(0), _WORST)  # all beams are equal: one goes on
        self._running = Beams(
            tokens, np.tile(first, (self._batch, 1)), np.zeros(shape, bool), np.zeros(shape, np.int64)
        )
        worst = np.full(shape, _WORST, np.float32)
        self._finished = Beams(tokens.copy(), worst, np.zeros(shape, bool), np.zeros(shape, np.int64))
        self._improvable = np.ones((self._batch, 1), bool)

    def run(self) -> Array:
        """All tokens of the best beams of each row, prompts first."""
        for at in range(self._most):
            candidates, origins = self._best(at)
            ends = self._ends(candidates, at)
            before = self._running.scores.shape
            going = np.where(ends, candidates.scores + _WORST, candidates.scores)
            places = _best_places(going, before[1])
            self._finish(candidates, ends, at)
            self._running = Beams(candidates.tokens, going, ends, candidates.lengths).chosen(places)
            self._update_hope(at + 1)
            if self._is_over(ends) or at + 1 == self._most:
                break
            self._advance(np.take_along_axis(origins, places, 1), at)
        best = self._settings.num_return_sequences
        longest = int(self._finished.lengths[:, :best].max(initial=0))
        found = self._finished.tokens[:, :best, : self._prompt + longest]
        return found.reshape(-1, found.shape[2])

    def _best(self, at: int) -> tuple[Beams, Array]:
        """The best continuations of each row, and which beams they continue."""
        decoding, settings = self._decoding, self._settings
        scores = self._score(log_softmax(decoding.logits), decoding.tokens, self._padding, decoding.source)
        if settings.do_sample:
            scores = warped(scores, settings, keep=len(settings.eos_token_id) + 1)
        if settings.renormalize_logits:
            scores = log_softmax(scores)
        vocabulary = scores.shape[1]
        total = (scores.reshape(self._batch, self._count, -1) + self._running.scores[..., None]).reshape(
            self._batch, -1
        )
        places = self._drawn(total) if settings.do_sample else _best_places(total, self._candidates)
        origins, tokens = places // vocabulary, places % vocabulary
        candidates = self._running.chosen(origins)
        candidates.tokens[:, :, self._prompt + at] = tokens
        candidates.scores = np.take_along_axis(total, places, 1)
        candidates.lengths += 1
        return candidates, origins

    def _drawn(self, total: Array) -> Array:
        """Different continuations, by their probability."""
        noise = self._random.gumbel(size=total.shape)  # the largest sums are a draw without replacement
        with np.errstate(divide="ignore"):
            return _best_places(np.log(softmax(total.astype(np.float64))) + noise, self._candidates)

    def _ends(self, candidates: Beams, at: int) -> Array:
        length = self._prompt + at + 1
        ends = np.isin(candidates.tokens[:, :, length - 1], self._settings.eos_token_id) | (at + 1 == self._most)
        if self._stopping is not None:
            rows = candidates.tokens[:, :, :length].reshape(-1, length)
            ends |= stopped(self._stopping, rows).reshape(ends.shape)
        return ends

    def _finish(self, candidates: Beams, ends: Array, at: int) -> None:
        """Keep the best of those that were finished, and the candidates that end now and are among the best."""
        settings, finished = self._settings, self._finished
        now = ends & (np.arange(self._candidates) < self._count)
        full = finished.done.all(1, keepdims=True) & (settings.early_stopping is True)
        scores = candidates.scores / np.float32((at + 1) ** settings.length_penalty)
        for hopeless in (full, ~self._improvable, ~now):
            scores = scores + np.where(hopeless, _WORST, np.float32(0))
        merged = Beams(
            np.concatenate([finished.tokens, candidates.tokens], 1),
            np.concatenate([finished.scores, scores], 1),
            np.concatenate([finished.done, now], 1),
            np.concatenate([finished.lengths, candidates.lengths], 1),
        )
        self._finished = merged.chosen(_best_places(merged.scores, self._count))

    def _update_hope(self, length: int) -> None:
        """Whether what is running can still be better than what is finished, as far as a look at its scores says."""
        settings, finished = self._settings, self._finished
        furthest = settings.early_stopping == "never" and settings.length_penalty > 0
        reached = self._most if furthest else length
        best = self._running.scores[:, :1] / np.float32(reached**settings.length_penalty)
        worst = np.where(finished.done, finished.scores.min(1, keepdims=True), _WORST)
        self._improvable &= (best > worst).any(1, keepdims=True)

    def _is_over(self, ends: Array) -> bool:
        enough = self._settings.early_stopping is True and bool(self._finished.done.all())
        return enough or not self._improvable.any() or bool(ends.all())

    def _advance(self, origins: Array, at: int) -> None:
        self._decoding.select((origins + np.arange(self._batch)[:, None] * self._count).reshape(-1))
        self._padding = self._padding.reshape(self._batch, -1)[:, 0].repeat(self._count)
        self._decoding.step(self._running.tokens[:, :, self._prompt + at].reshape(-1))


def _filler(settings: Settings) -> int:
    """What fills rows that have ended: like Hugging Face, which takes token 0 for no padding here, and here only."""
    return settings.pad_token_id or (settings.eos_token_id[0] if settings.eos_token_id else settings.pad)


def _best_places(scores: Array, count: int) -> Array:
    """Where the highest scores are, the highest first; of equal ones the first."""
    if scores.shape[1] <= _NARROW:
        return np.argsort(-scores, axis=1, kind="stable")[:, :count]
    least = np.partition(scores, -count, axis=1)[:, -count]
    rows = (np.nonzero(row >= bound)[0] for row, bound in zip(scores, least, strict=True))  # few, in their order
    return np.stack([at[np.argsort(-row[at], kind="stable")[:count]] for row, at in zip(scores, rows, strict=True)])
