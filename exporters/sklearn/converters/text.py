"""Words of texts, counted: a graph splits text at certain characters, and takes no text with others than it knows.

Tokens of all texts are one list, with the row of each beside it, so that nothing grows with the longest text. Known
characters are letters, digits, ASCII and common typographic punctuation; under ``lowercase`` capital letters are ASCII.
At any other character the graph fails, since scikit-learn might split there, or not.
"""

from __future__ import annotations

import string
from typing import Any

import numpy as np

from entrepot.exporters.sklearn.array import Array, Symbolic, lifted
from entrepot.exporters.sklearn.columns import matrix
from entrepot.exporters.sklearn.converters.encoders import inverse_frequencies
from entrepot.exporters.sklearn.encoding import position
from entrepot.exporters.sklearn.table import Results, converts
from entrepot.ir.errors import ConversionError

_SEPARATORS = "".join(sorted(set(string.punctuation) - {"_"})) + "\u2013\u2014\u2018\u2019\u201c\u201d\u2026\u2022«»¡¿"
_SPACES = " \t\n\r\f\v"
_PATTERNS = {r"(?u)\b\w\w+\b": 2, r"\b\w\w+\b": 2, r"(?u)\b\w+\b": 1, r"\b\w+\b": 1, r"\w+": 1, r"(?u)\w+": 1}
"""The patterns of tokens that are known, and the length of the shortest token."""
_SPACELESS = (r"\S+", r"(?u)\S+", r"[^\s]+")
_AT_SPACES = 0
"""Stands for that length where texts are split at white space alone."""


@converts("sklearn.CountVectorizer")
def counted(model: Any, x: Any) -> Results:
    """How often each word, or sequence of words, occurs."""
    texts: Symbolic = matrix(x)
    if texts.dtype != object or texts.ndim != 1:
        raise ConversionError("a vectoriser takes text along one axis", hint="give a list of strings, or one column")
    tokens, rows = _tokens(model, texts)
    count = texts.rows(np.zeros(len(model.vocabulary_) + 1, np.int64))
    least, most = (1, 1) if callable(model.analyzer) else model.ngram_range
    for length in range(least, most + 1):
        count = _added(count, *_sequences(tokens, rows, length), model.vocabulary_)
    found = count[:, :-1]
    found = np.minimum(found, np.int64(1)) if model.binary else found
    return {"transform": found.astype(model.dtype)}


@converts("sklearn.TfidfVectorizer")
def weighed(model: Any, x: Any) -> Results:
    """The same, weighed by how rare a word is."""
    return inverse_frequencies(model._tfidf, counted(model, x)["transform"])


def _splits_at_spaces(function: Any) -> bool:
    """Whether a function does nothing but ``text.split()``."""
    asked = _Asked()
    if function is str.split or not callable(function):
        return function is str.split
    try:
        return function(asked) is asked.parts
    except _FAILURES:
        return False


_FAILURES = (TypeError, AttributeError, ValueError, LookupError, RuntimeError, AssertionError, OSError, ImportError)
"""What a tokenizer may raise that is given no text."""


class _Asked:
    """A text that can be split, and nothing else."""

    def __init__(self) -> None:
        self.parts = object()

    def split(self) -> object:
        return self.parts


def _refuse_unknown(model: Any) -> int:
    given = {name: getattr(model, name) for name in ("tokenizer", "preprocessor", "strip_accents")}
    if callable(model.analyzer) and _splits_at_spaces(model.analyzer):
        return _AT_SPACES
    plain = given["preprocessor"] is None and given["strip_accents"] is None and model.analyzer == "word"
    pattern = model.token_pattern in _SPACELESS if given["tokenizer"] is None else _splits_at_spaces(given["tokenizer"])
    if plain and pattern:
        return _AT_SPACES
    odd = [name for name, value in given.items() if value is not None]
    if odd or model.analyzer != "word" or model.token_pattern not in _PATTERNS:
        what = odd[0] if odd else "analyzer" if model.analyzer != "word" else "token_pattern"
        value = getattr(model, what)
        said = getattr(value, "__name__", "a function") if callable(value) else repr(value)
        raise ConversionError(
            f"a vectoriser with {what}={said} cannot be written: ONNX splits at given characters",
            hint="use analyzer='word' with the default token_pattern",
        )
    return _PATTERNS[model.token_pattern]


def _tokens(model: Any, texts: Symbolic) -> tuple[Symbolic, Symbolic]:
    """All tokens in order, and the row of each."""
    shortest = _refuse_unknown(model)
    lowers = model.lowercase and not callable(model.analyzer)
    letters = r"A-Za-z\p{Ll}\p{Lm}\p{Lo}" if lowers else r"\pL"
    marks = "".join(f"\\{mark}" if mark in string.punctuation else mark for mark in _SEPARATORS)
    zero = _zero_if_known(texts, rf"[{letters}\p{{Nd}}_{_SPACES}{marks}]*")
    if lowers:
        texts = texts.op("StringNormalizer", case_change_action="LOWER", is_case_sensitive=1, locale="C")
    tokens, rows = texts, _row_numbers(texts) + zero
    for mark in _SPACES if shortest == _AT_SPACES else (*_SPACES, *_SEPARATORS):
        tokens, rows = _split(tokens, rows, mark)
    if shortest > 1:
        tokens, rows = _kept(tokens, rows, tokens.op("RegexFullMatch", pattern="(?s).", dtype=bool).op("Not"))
    stopped = [] if callable(model.analyzer) else sorted(model.get_stop_words() or ())
    return _kept(tokens, rows, position(tokens, stopped) < 0) if stopped else (tokens, rows)


def _row_numbers(x: Symbolic) -> Symbolic:
    build = x.build
    count = build.size(x.value, 0)
    numbers = build.op("Range", np.array(0, np.int64), count, np.array(1, np.int64))
    return Array(build, numbers, np.int64, x.shape)


def _zero_if_known(texts: Symbolic, pattern: str) -> Symbolic:
    """A zero, from a node that fails unless all texts match: see ``exporters/size_checks.py``."""
    odd = texts.op("RegexFullMatch", pattern=pattern, dtype=bool).op("Not").astype(np.int64).max()
    build = texts.build
    zero = build.op("Reshape", np.zeros(1, np.int64), (odd + 1).reshape(1).value)
    return Array(build, zero, np.int64, [None])  # a size that is said to be known would make it a copy


def _split(tokens: Symbolic, rows: Symbolic, mark: str) -> tuple[Symbolic, Symbolic]:
    build = tokens.build
    parts, _ = build.op("StringSplit", tokens.value, delimiter=mark, outputs=2)
    apart = Array(build, parts, object, [None, None])
    sizes = build.op("Shape", parts)
    each = Array(build, build.op("Expand", rows[:, None].value, sizes), np.int64, [None, None])
    flat, places = apart.ravel(), each.ravel()
    return _kept(flat, places, position(flat, [""]) < 0)


def _kept(tokens: Symbolic, rows: Symbolic, which: Symbolic) -> tuple[Symbolic, Symbolic]:
    return tuple(x.op("Compress", which, axis=0, shape=[None]) for x in (tokens, rows))


def _sequences(tokens: Symbolic, rows: Symbolic, length: int) -> tuple[Symbolic, Symbolic]:
    """Runs of so many tokens of one row, joined by spaces."""
    if length == 1:
        return tokens, rows
    joined, ends = tokens[: 1 - length], rows[length - 1 :]
    space = lifted(tokens.build, np.array(" ", object))
    for at in range(1, length):
        following = tokens[at : at + 1 - length] if at + 1 < length else tokens[at:]
        joined = joined.op("StringConcat", space).op("StringConcat", following)
    return _kept(joined, rows[: 1 - length], rows[: 1 - length] == ends)


def _added(count: Symbolic, tokens: Symbolic, rows: Symbolic, vocabulary: Any) -> Symbolic:
    known = sorted(vocabulary, key=vocabulary.get)
    found = position(tokens, known)
    at = np.stack([rows, np.where(found < 0, np.int64(len(known)), found)], axis=1)
    ones = rows * 0 + 1
    return count.op("ScatterND", at, ones, reduction="add", shape=count.shape)
