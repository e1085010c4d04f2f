"""Words of texts, counted: a graph can split text at certain characters, and takes it only where those are all there are.

Tokens of all texts are one list, with the row of each beside it, so that nothing grows with the longest text. Characters
are letters, digits, ASCII and common typographic punctuation; under ``lowercase`` capital letters are ASCII. A text with
any other character makes the graph fail, since it might be split elsewhere by scikit-learn.
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

_SEPARATORS = "".join(sorted(set(string.punctuation) - {"_"})) + "–—‘’“”…•«»¡¿"
_PATTERNS = {r"(?u)\b\w\w+\b": 2, r"\b\w\w+\b": 2, r"(?u)\b\w+\b": 1, r"\b\w+\b": 1, r"\w+": 1, r"(?u)\w+": 1}
"""The patterns of tokens that are known, and the length of the shortest token."""


@converts("sklearn.CountVectorizer")
def counted(model: Any, x: Any) -> Results:
    """How often each word, or sequence of words, occurs."""
    texts = matrix(x)
    if texts.dtype != object or texts.ndim != 1:
        raise ConversionError("a vectoriser takes text along one axis", hint="give a list of strings, or one column")
    tokens, rows = _tokens(model, texts)
    count = texts.rows(np.zeros(len(model.vocabulary_) + 1, np.int64))
    least, most = model.ngram_range
    for length in range(least, most + 1):
        count = _added(count, *_sequences(tokens, rows, length), model.vocabulary_)
    found = count[:, :-1]
    found = np.minimum(found, np.int64(1)) if model.binary else found
    return {"transform": found.astype(model.dtype)}


@converts("sklearn.TfidfVectorizer")
def weighed(model: Any, x: Any) -> Results:
    """The same, weighed by how rare a word is."""
    return inverse_frequencies(model._tfidf, counted(model, x)["transform"])


def _refuse_unknown(model: Any) -> int:
    given = {name: getattr(model, name) for name in ("tokenizer", "preprocessor", "strip_accents")}
    odd = [name for name, value in given.items() if value is not None]
    if odd or model.analyzer != "word" or model.token_pattern not in _PATTERNS:
        what = odd[0] if odd else "analyzer" if model.analyzer != "word" else "token_pattern"
        raise ConversionError(
            f"a vectoriser with {what}={getattr(model, what)!r} cannot be written: ONNX splits text at given characters only",
            hint="use analyzer='word' with the default token_pattern; or export what follows it by itself",
        )
    return _PATTERNS[model.token_pattern]


def _tokens(model: Any, texts: Symbolic) -> tuple[Symbolic, Symbolic]:
    """All tokens in order, and the row of each."""
    shortest = _refuse_unknown(model)
    letters = r"A-Za-z\p{Ll}\p{Lm}\p{Lo}" if model.lowercase else r"\pL"
    marks = "".join(f"\\{mark}" if mark in string.punctuation else mark for mark in _SEPARATORS)
    texts = _only(texts, rf"[{letters}\p{{Nd}}_ \t\n\r\f\v{marks}]*")
    if model.lowercase:
        texts = texts.op("StringNormalizer", case_change_action="LOWER", is_case_sensitive=1, locale="C")
    tokens, rows = _split(texts, _row_numbers(texts), "")
    for mark in _SEPARATORS:
        tokens, rows = _split(tokens, rows, mark)
    if shortest > 1:
        tokens, rows = _kept(tokens, rows, tokens.op("RegexFullMatch", pattern="(?s).", dtype=bool).op("Not"))
    stopped = sorted(model.get_stop_words() or ())
    return _kept(tokens, rows, position(tokens, stopped) < 0) if stopped else (tokens, rows)


def _row_numbers(x: Symbolic) -> Symbolic:
    build = x.build
    count = build.size(x.value, 0)
    numbers = build.op("Range", np.array(0, np.int64), count, np.array(1, np.int64))
    return Array(build, numbers, np.int64, x.shape)


def _only(texts: Symbolic, pattern: str) -> Symbolic:
    """The texts, if all of them match; else the graph fails."""
    build = texts.build
    fine = texts.op("RegexFullMatch", pattern=pattern, dtype=bool).astype(np.int64).min()
    size = Array(build, build.size(texts.value, 0), np.int64, ())
    wanted = (size + 1 - fine).reshape(1)
    return Array(build, build.op("Reshape", texts.value, wanted.value), object, texts.shape)


def _split(tokens: Symbolic, rows: Symbolic, mark: str) -> tuple[Symbolic, Symbolic]:
    build = tokens.build
    parts, _ = build.op("StringSplit", tokens.value, delimiter=mark or None, outputs=2)
    apart = Array(build, parts, object, [None, None])
    sizes = build.op("Shape", parts)
    each = Array(build, build.op("Expand", rows[:, None].value, sizes), np.int64, [None, None])
    flat, places = apart.ravel(), each.ravel()
    return _kept(flat, places, position(flat, [""]) < 0)


def _kept(tokens: Symbolic, rows: Symbolic, which: Symbolic) -> tuple[Symbolic, Symbolic]:
    return tuple(x.op("Compress", which, axis=0, shape=[None]) for x in (tokens, rows))  # type: ignore[return-value]


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
