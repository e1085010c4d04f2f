"""One batch while it is generated: tokens, masks, and the state that goes from step to step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from entrepot.ir.errors import InputError
from entrepot.runtime.arrays import as_array
from entrepot.runtime.generation.inputs import as_mask, as_rows, as_tokens
from entrepot.runtime.generation.joining import Rows, joined
from entrepot.runtime.generation.kept import Kept
from entrepot.runtime.generation.manifest import Manifest

Array: TypeAlias = np.ndarray[Any, Any]

Run: TypeAlias = Callable[[str, Mapping[str, Any]], dict[str, Any]]
"""Runs the graph of a role on those of the arrays that it takes."""


class Decoding:
    """A batch of sequences that grow; ``Package.start`` makes one.

    Args:
        manifest: What the package says of itself.
        run: Runs its graphs.
        roles: Its graphs.
        needed: What the decoder takes.
        given: The caller's inputs, by name.
        tokens: The prompt, of shape ``(rows, length)``.
        mask: Which tokens of the prompt count.
        every: Whether all tokens are scored, or the last one alone.
        kept: Where the state is between steps.

    Attributes:
        tokens: All tokens so far, of shape ``(rows, length)``.
        mask: Which of them count.
        source: The tokens that an encoder was given, for each row; the prompts if there is no encoder, and ``None`` if
            what it was given is no text.
        logits: The scores of the next token, of shape ``(rows, vocabulary)``.
        all_logits: The scores at every token of the last step, ``(rows, new, vocabulary)``; at the last one alone where
            no more are asked for.
    """

    logits: Array
    all_logits: Array

    def __init__(
        self,
        manifest: Manifest,
        run: Run,
        roles: frozenset[str],
        needed: frozenset[str],
        given: Mapping[str, Array],
        tokens: Array,
        mask: Array,
        *,
        every: bool = True,
        kept: Kept | None = None,
    ) -> None:
        self._manifest, self._run, self._kept = manifest, run, kept or Kept()
        self._anew = manifest.anew if manifest.states else 0
        self._first = np.array([0 if every else -1], np.int64)
        self.tokens, self.mask = tokens[:, :0], mask[:, :0]
        self.source = _source(manifest, given, tokens)
        self._state: dict[str, Any] = {}
        encoded = run("encoder", given) if "encoder" in roles else {}
        self._constants = {name: self._kept.put(each) for name, each in {**given, **encoded}.items() if name in needed}
        self._follows_prefill = "prefill" in roles and _at_once(manifest.prompt_from, mask)
        if self._follows_prefill:
            self._check_room(tokens.shape[1])
            self._append(tokens, mask)
            of_prompt = {**given, **encoded, **self._fed(tokens.shape[1]), manifest.mask: mask}
            self._take(run("prefill", of_prompt), tokens.shape[1])
            self._state = {each.past: self._with_room(self._state[each.past], each.shape) for each in manifest.states}
            return
        self._state = self._empty_states()
        width = manifest.step or max(tokens.shape[1], 1)
        scores = []
        for at in range(0, tokens.shape[1], width):
            self.step(tokens[:, at : at + width], mask[:, at : at + width])
            scores.append(self.all_logits)
        self.all_logits = np.concatenate(scores, 1)

    def _empty_states(self) -> dict[str, Any]:
        states = self._manifest.states
        return {each.past: self._kept.put(_empty(each.shape, each.dtype, len(self.tokens))) for each in states}

    @property
    def rows(self) -> int:
        """How many sequences there are."""
        return len(self.tokens)

    def step(self, tokens: Any, mask: Any = None) -> Array:
        """Append tokens to each row; returns the scores of the next one.

        Args:
            tokens: Of shape ``(rows,)`` or ``(rows, new)``.
            mask: Which of them count, of the same shape; by default all.

        Raises:
            InputError: There is not one row of tokens for each sequence, or more than the graph takes at once.
        """
        tokens = _in_rows(as_tokens(tokens, "the tokens of a step"))
        if tokens.ndim != 2 or len(tokens) != self.rows or not tokens.shape[1]:
            raise InputError(
                f"the tokens of a step have shape {tokens.shape}, expected ({self.rows},) or ({self.rows}, new)"
            )
        if self._manifest.step and tokens.shape[1] > self._manifest.step:
            raise InputError(f"{tokens.shape[1]} tokens were given, the graph takes {self._manifest.step} at once")
        self._check_room(tokens.shape[1])
        counted = np.ones_like(tokens) if mask is None else _in_rows(as_array(mask))
        before = self.tokens, self.mask
        self._append(tokens, as_mask(counted, tokens.shape, "the mask of a step", "its tokens"))
        anew = 0 < before[0].shape[1] <= self._anew < self.tokens.shape[1]
        new = tokens.shape[1] if self._manifest.states and not anew else self.tokens.shape[1]
        try:
            state = self._begun_anew() if anew else self._state
            results = self._run("decoder", {**self._constants, **state, **self._fed(new)})
        except BaseException:  # a server goes on with the rows that it has
            self.tokens, self.mask = before
            raise
        self._take(results, new)
        self.all_logits = self.all_logits[:, -tokens.shape[1] :] if anew else self.all_logits
        return self.logits

    def _begun_anew(self) -> dict[str, Any]:
        """The states before the first token, where all tokens are to be read once more.

        Raises:
            InputError: They cannot be: the prompt had something else with it, or came token by token.
        """
        if self._follows_prefill or self._manifest.step:
            raise InputError(
                f"rows would have more than {self._anew} tokens, from where on the model reads all of them anew",
                hint="begin with all tokens so far as the prompt",
            )
        return self._empty_states()

    def select(self, rows: Any) -> None:
        """Go on with some of the rows, in any order, each as often as it is named.

        Raises:
            InputError: They are no numbers of rows.
        """
        chosen = as_rows(rows, self.rows)
        if np.array_equal(chosen, np.arange(self.rows)):
            return
        self.tokens, self.mask, self.logits = self.tokens[chosen], self.mask[chosen], self.logits[chosen]
        self.source = None if self.source is None else self.source[chosen]
        for state in self._manifest.states:
            self._state[state.past] = self._kept.take(self._state[state.past], chosen, state.batch)
        for name, value in self._constants.items():
            self._constants[name] = self._kept.take(value, chosen, self._manifest.constants.get(name, 0))

    def join(self, other: Decoding) -> None:
        """Go on with the rows of another batch as well, which come after those of this one.

        Rows with fewer tokens get padding on the left.

        Args:
            other: What ``start`` of the same package returned, at any step; it is not changed.

        Raises:
            InputError: It is of another package, or the numbers of tokens differ and the model cannot take padding.
        """
        if getattr(other, "_manifest", None) is not self._manifest:
            raise InputError("only what the same package started can join", hint="use one package for both")
        lengths = self.tokens.shape[1], other.tokens.shape[1]
        if min(lengths) <= self._anew < max(lengths):
            raise InputError(
                f"rows of {lengths[1]} tokens cannot join rows of {lengths[0]}: the model reads more than "
                f"{self._anew} in another way",
                hint="begin with all tokens so far as the prompt",
            )
        rows = joined(self._manifest, self._rows(), other._rows())
        self.tokens, self.mask, self.logits = rows.tokens, rows.mask, rows.logits
        self.source = None  # of different lengths; whoever decodes step by step chooses the tokens
        self._state = {name: self._kept.put(value) for name, value in rows.states.items()}
        self._constants = {name: self._kept.put(value) for name, value in rows.constants.items()}

    def _rows(self) -> Rows:
        """What there is, on the host."""
        states, constants = (
            {name: self._kept.fetch(value) for name, value in each.items()} for each in (self._state, self._constants)
        )
        return Rows(self.tokens, self.mask, self.logits, states, constants)

    def _check_room(self, new: int) -> None:
        length, capacity = self.tokens.shape[1] + new, self._manifest.capacity
        if capacity and length > capacity:
            raise InputError(
                f"rows would have {length} tokens, the cache has room for {capacity}",
                hint="export with a larger max_length, or with a cache that grows",
            )

    def _with_room(self, value: Any, shape: tuple[int, ...]) -> Any:
        """A state with the room that the decoder asks for."""
        array = self._kept.fetch(value)
        more = [size - had if size > 0 else 0 for size, had in zip(shape, array.shape, strict=True)]
        return self._kept.put(np.pad(array, [(0, each) for each in more])) if any(more) else value

    def _whole_mask(self) -> Array:
        """The mask of all tokens, and of the room behind them."""
        more = max(self._manifest.capacity - self.mask.shape[1], 0)
        return np.pad(self.mask, ((0, 0), (0, more))) if more else self.mask

    def _append(self, tokens: Array, mask: Array) -> None:
        self.tokens = np.concatenate([self.tokens, tokens], 1)
        self.mask = np.concatenate([self.mask, mask], 1)

    def _fed(self, new: int) -> dict[str, Array]:
        manifest = self._manifest
        fed = {manifest.tokens: self.tokens[:, -new:]}
        if manifest.mask:
            fed[manifest.mask] = self._whole_mask() if manifest.mask_of == "all" else self.mask[:, -new:]
        if manifest.past_length:
            fed[manifest.past_length] = np.array([self.tokens.shape[1] - new], np.int64)
        if manifest.first_scored:
            fed[manifest.first_scored] = self._first
        if manifest.positions:
            fed[manifest.positions] = np.maximum(self.mask.cumsum(1, np.int64) - 1, 0)[:, -new:]
        return fed

    def _take(self, results: Mapping[str, Any], new: int) -> None:
        counts = self.mask[:, -1].astype(bool)
        alone = new == 1 and self._manifest.step > 0 and len(self._state) > 0 and not counts.all()
        for state in self._manifest.states:
            after = results[state.present]
            if alone and 0 not in state.shape:  # padding leaves the state of its row as it is
                rows = counts.reshape([-1 if size == -1 else 1 for size in state.shape])
                after = np.where(rows, self._kept.fetch(after), self._kept.fetch(self._state[state.past]))
            self._state[state.past] = self._kept.put(after)
        self.all_logits = self._kept.fetch(results[self._manifest.logits])
        self.logits = self.all_logits[:, -1].astype(np.float32, copy=False)


def _at_once(least: int, mask: Array) -> bool:
    """Whether a prompt goes through the graph for prompts, which lets padding behind a token into the state."""
    return not least or (mask.shape[1] >= least and not (mask[:, 1:] < mask[:, :-1]).any())


def _source(manifest: Manifest, given: Mapping[str, Array], tokens: Array) -> Array | None:
    if manifest.kind == "decoder":
        return tokens
    source = given.get(manifest.source)
    return source if source is not None and source.ndim == tokens.ndim and source.dtype.kind in "iu" else None


def _in_rows(array: Any) -> Array:
    """One row for each sequence, of one element if there is only one."""
    array = np.asarray(array)
    return array[:, None] if array.ndim == 1 else array


def _empty(shape: tuple[int, ...], dtype: str, rows: int) -> Array:
    return np.zeros([rows if size == -1 else size for size in shape], getattr(ml_dtypes, dtype, dtype))
