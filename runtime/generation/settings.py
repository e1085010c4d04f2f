"""How tokens are chosen and when to stop: the defaults of a package, and what a call says instead."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from entrepot.ir.arguments import as_flag, as_integer, as_number, expected
from entrepot.ir.errors import InputError


@dataclass(frozen=True)
class Settings:
    """Everything that a call of ``generate`` may choose; names and meanings are those of ``generation_config.json``.

    Attributes:
        max_new_tokens: The most tokens per row; ``None`` for what ``max_length`` leaves, else 20.
        max_length: The same with the prompt counted.
        min_new_tokens: No row ends before it has as many.
        min_length: The same with the prompt counted.
        num_beams: Sequences that are followed side by side; 1 for a greedy choice, or a sample.
        do_sample: Draw tokens instead of taking the most likely ones.
        temperature: What logits are divided by before a token is drawn.
        top_k: How many of the most likely tokens may be drawn; 0 for all.
        top_p: The least probability that the tokens which may be drawn have together.
        seed: Where random numbers start; ``None`` for anywhere.
        repetition_penalty: What the scores of tokens that occurred are divided by.
        no_repeat_ngram_size: The length of runs of tokens that may occur once only; 0 for none.
        eos_token_id: Tokens that end a row.
        pad_token_id: What fills rows that have ended; ``None`` for the first that ends one.
        length_penalty: The power of its length by which the score of a beam is divided.
        early_stopping: Whether beams end as soon as there are enough finished ones; ``"never"`` looks furthest.
        forced_bos_token_id: The first new token.
        forced_eos_token_id: The last token, where ``max_length`` is reached.
        suppress_tokens: Tokens that are never chosen.
        begin_suppress_tokens: Tokens that are not chosen first.
        decoder_start_token_id: What decoders of encoder-decoders begin with.
    """

    max_new_tokens: int | None = None
    max_length: int | None = None
    min_new_tokens: int | None = None
    min_length: int = 0
    num_beams: int = 1
    do_sample: bool = False
    temperature: float = 1.0
    top_k: int = 50
    top_p: float = 1.0
    seed: int | None = None
    repetition_penalty: float = 1.0
    no_repeat_ngram_size: int = 0
    eos_token_id: tuple[int, ...] = ()
    pad_token_id: int | None = None
    length_penalty: float = 1.0
    early_stopping: bool | Literal["never"] = False
    forced_bos_token_id: int | None = None
    forced_eos_token_id: tuple[int, ...] = ()
    suppress_tokens: tuple[int, ...] = ()
    begin_suppress_tokens: tuple[int, ...] = ()
    decoder_start_token_id: int | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any] | None) -> Settings:
        """Settings by name; ``None`` stands for the default.

        Raises:
            InputError: There is no such setting, or it cannot have this value.
        """
        return cls().changed(given)

    def changed(self, given: Mapping[str, Any] | None) -> Settings:
        """The same settings with some of them replaced; what is ``None`` stays.

        Raises:
            InputError: There is no such setting, or it cannot have this value.
        """
        given = {} if given is None else given
        if not isinstance(given, Mapping):
            raise expected("settings", "a mapping from names to values", given)
        unknown = [name for name in given if name not in _READERS]
        if unknown:
            raise InputError(
                f"generate has no setting '{unknown[0]}'", hint=f"it has {', '.join(_READERS)}, and the model's inputs"
            )
        new: dict[str, Any] = {name: _READERS[name](value, name) for name, value in given.items() if value is not None}
        if new.get("max_new_tokens") is not None:
            new.setdefault("max_length", None)
        return dataclasses.replace(self, **new)

    @property
    def pad(self) -> int:
        """What fills rows that have ended."""
        if self.pad_token_id is not None:
            return self.pad_token_id
        return self.eos_token_id[0] if self.eos_token_id else 0

    def most(self, prompt: int) -> int:
        """The most new tokens after a prompt of some length."""
        if self.max_new_tokens is not None:
            return self.max_new_tokens
        if self.max_length is None:
            return 20
        return max(self.max_length - as_integer(prompt, "prompt", least=0), 0)

    def least(self, prompt: int) -> int:
        """The fewest new tokens after a prompt of some length."""
        if self.min_new_tokens is not None:
            return self.min_new_tokens
        return max(self.min_length - as_integer(prompt, "prompt", least=0), 0)

    def as_dict(self) -> dict[str, Any]:
        """The settings that are not at their defaults, for a file."""
        default = Settings()
        mine = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in mine.items()
            if value != getattr(default, name)
        }


def _count(value: Any, name: str) -> int:
    return as_integer(value, name, least=0)


def _beams(value: Any, name: str) -> int:
    return as_integer(value, name, least=1)


def _token(value: Any, name: str) -> int:
    return as_integer(value, name, least=0)


def _tokens(value: Any, name: str) -> tuple[int, ...]:
    """One token, or a list; a negative one stands for none, as in many files."""
    found = np.asarray(list(value) if isinstance(value, AbstractSet) else value)
    if not found.size:
        return ()
    if found.ndim > 1 or found.dtype.kind not in "iu":
        raise expected(name, "a token, or a list of them", value)
    return tuple(token for token in found.reshape(-1).tolist() if token >= 0)


def _positive(value: Any, name: str) -> float:
    number = as_number(value, name)
    if number < _LEAST:
        raise expected(name, f"a number of {_LEAST:g} or more", value)
    return number


def _share(value: Any, name: str) -> float:
    number = as_number(value, name)
    if number > 1:
        raise expected(name, "a number from 0 to 1", value)
    return number


def _any_number(value: Any, name: str) -> float:
    return -as_number(-value, name) if isinstance(value, int | float) and value < 0 else as_number(value, name)


def _stopping(value: Any, name: str) -> bool | Literal["never"]:
    return "never" if isinstance(value, str) and value == "never" else as_flag(value, name)


_READERS = {
    "max_new_tokens": _count,
    "max_length": _count,
    "min_new_tokens": _count,
    "min_length": _count,
    "num_beams": _beams,
    "do_sample": as_flag,
    "temperature": _positive,
    "top_k": _count,
    "top_p": _share,
    "seed": _count,
    "repetition_penalty": _positive,
    "no_repeat_ngram_size": _count,
    "eos_token_id": _tokens,
    "pad_token_id": _token,
    "length_penalty": _any_number,
    "early_stopping": _stopping,
    "forced_bos_token_id": _token,
    "forced_eos_token_id": _tokens,
    "suppress_tokens": _tokens,
    "begin_suppress_tokens": _tokens,
    "decoder_start_token_id": _token,
}
_LEAST = 1e-6
"""The smallest divisor of scores: below, quotients of ordinary scores would soon be no numbers in single precision."""

ENDS = 8
"""How many tokens that end a row a loop in a graph takes: an input with a default has one size."""


def padded_ends(tokens: Sequence[int]) -> np.ndarray[Any, Any]:
    """Tokens that end a row, as a loop in a graph takes them.

    Raises:
        InputError: There are too many.
    """
    if len(tokens) > ENDS:
        raise InputError(f"eos_token_id has {len(tokens)} tokens, a loop in the graph takes {ENDS}")
    return np.array([*tokens, *[-1] * (ENDS - len(tokens))], np.int64)


SETTINGS = frozenset(_READERS)
"""Their names."""
