"""Strings: object arrays of Python strings, on the host only."""

from __future__ import annotations

import math
import string
from collections.abc import Callable
from typing import Any

import numpy as np

from entrepot.ir.errors import InputError, UnsupportedOpError
from entrepot.runtime import room
from entrepot.runtime.providers.cpu.regular_match import full_match
from entrepot.runtime.providers.cpu.table import native

Array = np.ndarray[Any, Any]


@native("StringConcat", 20)
def string_concat(X: Array, Y: Array) -> Array:
    """``X + Y`` elementwise, with broadcasting."""
    size = math.prod(np.broadcast_shapes(X.shape, Y.shape))
    room.claim([sum(size // max(x.size, 1) * sum(map(len, x.flat)) for x in (X, Y))], 1)
    return np.asarray(X.astype(object) + Y.astype(object), dtype=object)


@native("RegexFullMatch", 20)
def regex_full_match(X: Array, *, pattern: str | None = None) -> Array:
    """Whether each string matches the whole ``pattern``.

    The pattern is in RE2's syntax, as the specification asks, and the time grows with the text, not faster.
    """
    if pattern is None:
        raise InputError("RegexFullMatch: the attribute 'pattern' is missing")
    return _each(X, full_match(pattern), bool)


@native("StringSplit", 20)
def string_split(X: Array, *, delimiter: str | None = None, maxsplit: int | None = None) -> tuple[Array, Array]:
    """The parts of each string along a new last axis, padded with ``""``, and how many there are."""
    limit = -1 if maxsplit is None else maxsplit
    parts = [text.split(delimiter or None, limit) for text in X.reshape(-1)]
    width = max(map(len, parts), default=0)
    room.claim((len(parts), width))
    padded = np.array([part + [""] * (width - len(part)) for part in parts], dtype=object)
    counts = np.array([len(part) for part in parts], dtype=np.int64)
    return padded.reshape(*X.shape, width), counts.reshape(X.shape)


@native("StringNormalizer", 10)
def string_normalizer(
    X: Array,
    *,
    case_change_action: str = "NONE",
    is_case_sensitive: int = 0,
    locale: str | None = None,
    stopwords: list[str] | None = None,
) -> Array:
    """Drop stop words, then change case; an empty result is one empty string.

    In the locale ``C``, letters are those of ASCII alone, as they are to C's ``towlower``.
    """
    if locale not in (None, "", "C", "en_US", "en_US.UTF-8", "en_US.utf8"):
        raise UnsupportedOpError(f"StringNormalizer: locale {locale!r} is not supported", hint="use en_US")
    if X.ndim > 2 or (X.ndim == 2 and X.shape[0] != 1):
        raise InputError(f"StringNormalizer: X has shape {X.shape}, expected (C,) or (1, C)")
    lower, upper = (_lower_ascii, _upper_ascii) if locale == "C" else (str.lower, str.upper)
    fold = _same if is_case_sensitive else lower
    dropped = {fold(word) for word in stopwords or ()}
    change = {"LOWER": lower, "UPPER": upper, "NONE": _same}[case_change_action]
    kept = [change(text) for text in X.reshape(-1) if fold(text) not in dropped] or [""]
    return np.array(kept, dtype=object).reshape(*X.shape[:-1], len(kept))


@native("TfIdfVectorizer", 9)
def tf_idf_vectorizer(
    X: Array,
    *,
    max_gram_length: int,
    max_skip_count: int,
    min_gram_length: int,
    mode: str,
    ngram_counts: list[int],
    ngram_indexes: list[int],
    pool_int64s: list[int] | None = None,
    pool_strings: list[str] | None = None,
    weights: list[float] | None = None,
) -> Array:
    """Counts of the pool's n-grams in each row, weighted as ``mode`` (TF, IDF, TFIDF) says."""
    if min_gram_length < 1 or max_skip_count < 0:
        raise InputError(f"TfIdfVectorizer with n-grams of {min_gram_length} tokens, {max_skip_count} skipped")
    pool: list[Any] = list(pool_strings if pool_strings is not None else pool_int64s or ())
    columns = _columns(pool, ngram_counts, ngram_indexes, min_gram_length, max_gram_length)
    rows = X.reshape(1, -1) if X.ndim < 2 else X
    counts = room.zeros((len(rows), max(ngram_indexes, default=-1) + 1), np.float32)
    for row, tokens in zip(counts, rows, strict=True):
        for gram in _grams(tokens.tolist(), min_gram_length, max_gram_length, max_skip_count):
            if (column := columns.get(gram)) is not None:
                row[column] += 1
    result = _weighted(counts, mode, ngram_indexes, weights)
    return result if X.ndim == 2 else result[0]


def _columns(
    pool: list[Any], starts: list[int], indexes: list[int], shortest: int, longest: int
) -> dict[tuple[Any, ...], int]:
    columns: dict[tuple[Any, ...], int] = {}
    rank = iter(indexes)
    for length, start in enumerate(starts, start=1):
        end = starts[length] if length < len(starts) else len(pool)
        for at in range(start, end, length):
            column = next(rank, None)
            if column is None:
                raise InputError(f"TfIdfVectorizer has {len(indexes)} ngram_indexes, fewer than n-grams")
            if shortest <= length <= longest:
                columns[tuple(pool[at : at + length])] = column
    return columns


def _grams(tokens: list[Any], shortest: int, longest: int, max_skip: int) -> list[tuple[Any, ...]]:
    found = []
    for length in range(shortest, min(longest, len(tokens)) + 1):
        furthest = min(max_skip, len(tokens) // (length - 1)) if length > 1 else 0  # a single token has no gaps
        for skip in range(furthest + 1):
            reach = (length - 1) * (skip + 1)
            found += [tuple(tokens[at : at + reach + 1 : skip + 1]) for at in range(len(tokens) - reach)]
    return found


def _weighted(counts: Array, mode: str, indexes: list[int], weights: list[float] | None) -> Array:
    if mode == "TF":
        return counts
    scale = np.ones(counts.shape[1], dtype=np.float32)
    if weights is not None:
        scale[list(indexes)] = weights  # a tuple would be one position in as many axes
    return (counts if mode == "TFIDF" else (counts > 0).astype(np.float32)) * scale


def _each(X: Array, function: Callable[[str], Any], dtype: type) -> Array:
    return np.array([function(text) for text in X.reshape(-1)], dtype=dtype).reshape(X.shape)


def _same(text: str) -> str:
    return text


def _lower_ascii(text: str) -> str:
    return text.translate(_LOWER)


def _upper_ascii(text: str) -> str:
    return text.translate(_UPPER)


_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_UPPER = str.maketrans(string.ascii_lowercase, string.ascii_uppercase)
