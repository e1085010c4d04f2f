"""What each setting of ``generate`` may be, read once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Literal, TypeAlias

import numpy as np

from entrepot.ir.arguments import as_flag, as_integer, as_number, expected

Words: TypeAlias = tuple[tuple[int, ...], ...]
"""Runs of tokens."""

Biases: TypeAlias = tuple[tuple[tuple[int, ...], float], ...]
"""Runs of tokens, and what is added to the score of the last token of each after those before it."""


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


def _items(value: Any, name: str, what: str) -> list[Any]:
    if isinstance(value, str | Mapping) or not isinstance(value, Sequence | np.ndarray):
        raise expected(name, what, value)
    return list(value)


def _word(value: Any, name: str) -> tuple[int, ...]:
    items = _items(value, f"an entry of {name}", "a list of tokens")
    if not items:
        raise expected(f"an entry of {name}", "a list of tokens", value)
    return tuple(as_integer(token, f"a token of {name}", least=0) for token in items)


def _words(value: Any, name: str) -> Words:
    return tuple(_word(each, name) for each in _items(value, name, "a list of lists of tokens"))


def _biases(value: Any, name: str) -> Biases:
    """By the tuple of tokens, or as pairs of tokens and a number, which is how files have it."""
    pairs = (
        value.items() if isinstance(value, Mapping) else _items(value, name, "a list of pairs of tokens and a number")
    )
    found = []
    for pair in pairs:
        if not (isinstance(pair, Sequence) and len(pair) == len(("tokens", "number"))):
            raise expected(f"an entry of {name}", "a pair of tokens and a number", pair)
        found.append((_word(pair[0], name), _any_number(pair[1], name)))
    return tuple(found)


def _decay(value: Any, name: str) -> tuple[int, float] | None:
    """Where it starts and its factor; none in place of ``None``, which stands for what the package says."""
    items = _items(value, name, "a pair: where it starts, and its factor")
    if not items:
        return None
    if len(items) != len(("start", "factor")):
        raise expected(name, "a pair: where it starts, and its factor", value)
    return as_integer(items[0], name, least=0), as_number(items[1], name)


def read(value: Any, name: str) -> Any:
    """The value of a setting. Text is no number here: a call that has one forgot to convert it.

    Raises:
        InputError: The setting cannot have this value.
    """
    if isinstance(value, str) and name in _NUMBERS:
        raise expected(name, "a number", value)
    return READERS[name](value, name)


READERS: dict[str, Callable[[Any, str], Any]] = {
    "max_new_tokens": _count,
    "max_length": _count,
    "min_new_tokens": _count,
    "min_length": _count,
    "num_beams": _beams,
    "num_return_sequences": _beams,
    "do_sample": as_flag,
    "temperature": _positive,
    "top_k": _count,
    "top_p": _share,
    "top_h": _share,
    "min_p": _share,
    "typical_p": _share,
    "epsilon_cutoff": _share,
    "eta_cutoff": _share,
    "seed": _count,
    "repetition_penalty": _positive,
    "encoder_repetition_penalty": _positive,
    "no_repeat_ngram_size": _count,
    "encoder_no_repeat_ngram_size": _count,
    "bad_words_ids": _words,
    "sequence_bias": _biases,
    "eos_token_id": _tokens,
    "pad_token_id": _token,
    "length_penalty": _any_number,
    "early_stopping": _stopping,
    "forced_bos_token_id": _token,
    "forced_eos_token_id": _tokens,
    "suppress_tokens": _tokens,
    "begin_suppress_tokens": _tokens,
    "exponential_decay_length_penalty": _decay,
    "remove_invalid_values": as_flag,
    "renormalize_logits": as_flag,
    "decoder_start_token_id": _token,
}
_LEAST = 1e-6
"""The smallest divisor of scores: below, quotients of ordinary scores would soon be no numbers in single precision."""
_NUMBERS = frozenset(
    name for name, reader in READERS.items() if reader in (_count, _beams, _token, _positive, _share, _any_number)
)
"""Settings of one number."""
