"""Parts of texts replaced, for which ONNX has no operator: texts are split at them and put together again."""

from __future__ import annotations

import re
from re import _constants as words  # type: ignore[attr-defined] # what `re` makes of a pattern
from re import _parser  # type: ignore[attr-defined]
from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import Builder, typed

_MOST = 64
"""Characters that are replaced one after the other."""


def parts_matched(pattern: str) -> list[str] | None:
    """What a regular expression matches: any one of some ASCII characters, or one text; ``None`` for anything else."""
    try:
        parsed: list[Any] = list(_parser.parse(pattern))
    except re.error:
        return None
    if len(parsed) != 1:
        plain = parsed and all(kind is words.LITERAL and value for kind, value in parsed)
        return ["".join(chr(value) for _, value in parsed)] if plain else None
    codes: list[int] = []
    for kind, value in parsed[0][1] if parsed[0][0] is words.IN else parsed:
        if kind not in (words.LITERAL, words.RANGE):
            return None
        codes += [value] if kind is words.LITERAL else range(value[0], value[1] + 1)
    return [chr(code) for code in codes] if len(codes) <= _MOST and all(0 < code < 128 for code in codes) else None


def replaced(build: Builder, texts: ir.Value, rank: int, some: list[str], by: str) -> ir.Value:
    """Texts in which some characters, or a text, are replaced by another text, which contains none of them."""
    for part in some:
        texts = _replaced(build, texts, rank, part, by)
    return texts


def words_of(build: Builder, texts: ir.Value, rank: int) -> tuple[ir.Value, ir.Value]:
    """What stands between white space in texts, along an axis more, and how many there are.

    onnxruntime (1.31) splits at spaces alone where the standard says white space; frameworks mean that of ASCII.
    """
    dims: Any = [None] * rank if texts.shape is None else list(texts.shape)
    parts, counts = build.op("StringSplit", replaced(build, texts, rank, _SPACES, " "), outputs=2)
    return _text(parts, [*dims, None]), typed(counts, np.int64, dims)


_SPACES = list("\t\n\v\f\r")


def stripped(build: Builder, texts: ir.Value, rank: int) -> ir.Value:
    r"""Texts without the white space of ASCII at both ends.

    One kind of it after the other, and again as long as there is any: ``"\t \n x"`` takes three turns.
    """
    dims: Any = [None] * rank if texts.shape is None else list(texts.shape)
    body = build.body("strip")
    body.input("turn", np.int64, [])
    body.input("going", np.bool_, [])
    here = body.input("texts", ir.DataType.STRING, [None] * rank)
    for space in (" ", *_SPACES):
        here = _trimmed(body, here, rank, space)
    graph = body.graph([_has_spaces(body, here), _text(body.op("Identity", here), [None] * rank)])
    return _text(build.op("Loop", None, _has_spaces(build, texts), texts, body=graph), dims)


def _has_spaces(build: Builder, texts: ir.Value) -> ir.Value:
    """Whether any text begins or ends with white space."""
    found = build.op("RegexFullMatch", texts, pattern=r"(?s)[ \t\n\v\f\r].*|.*[ \t\n\v\f\r]")
    flat = build.op("Concat", build.op("Reshape", build.cast(found, np.int64), [-1]), [0], axis=0)
    return typed(build.cast(build.op("ReduceMax", flat, keepdims=0), np.bool_), np.bool_, [])


def _trimmed(build: Builder, texts: ir.Value, rank: int, space: str) -> ir.Value:
    """Texts without one character at both ends."""
    parts, _ = _parts(build, texts, rank, space)
    whole = typed(build.op("Concat", parts, _column(build, texts), axis=-1), ir.DataType.STRING, [None] * (rank + 1))
    some = build.cast(build.op("Not", build.op("Equal", whole, _constant(build, ""))), np.int64)
    first, last = (build.op("ArgMax", some, axis=rank, keepdims=0, select_last_index=at) for at in (0, 1))
    ends = build.op("Where", build.op("Greater", build.op("ReduceMax", some, [rank], keepdims=0), 0), last, -1)
    return _joined(build, texts, parts, space, first, build.op("Add", ends, 1))


def _column(build: Builder, texts: ir.Value) -> ir.Value:
    """An empty text for each, along an axis more: there may be no parts at all."""
    return build.op("Expand", _constant(build, ""), build.op("Concat", build.op("Shape", texts), [1], axis=0))


def _replaced(build: Builder, texts: ir.Value, rank: int, gone: str, by: str) -> ir.Value:
    parts, counts = _parts(build, texts, rank, gone)
    return _joined(build, texts, parts, by, build.constant(np.array(0, np.int64)), counts)


def _parts(build: Builder, texts: ir.Value, rank: int, between: str) -> tuple[ir.Value, ir.Value]:
    dims: Any = [None] * rank if texts.shape is None else list(texts.shape)
    parts, counts = build.op("StringSplit", texts, delimiter=between, outputs=2)
    return _text(parts, [*dims, None]), counts


def _joined(build: Builder, texts: ir.Value, parts: ir.Value, by: str, first: ir.Value, end: ir.Value) -> ir.Value:
    """Parts from the first on to before the end of each text, with something between them."""
    rank = len(parts.shape or ()) - 1
    dims: Any = [None] * rank if texts.shape is None else list(texts.shape)
    turns = build.op("Squeeze", build.shape(parts, rank, rank + 1))
    empty = _text(build.op("Expand", _constant(build, ""), build.op("Shape", texts)), dims)
    body = build.body("join")
    at, going = body.input("at", np.int64, []), body.input("going", np.bool_, [])
    before = body.input("before", ir.DataType.STRING, [None] * rank)
    part = body.op("Gather", parts, at, axis=rank)  # an empty text where there are fewer
    if by:
        between = body.op("Where", body.op("Equal", at, first), _constant(body, ""), _constant(body, by))
        longer = body.op("StringConcat", body.op("StringConcat", before, between), part)
        inside = body.op("And", body.op("GreaterOrEqual", at, first), body.op("Less", at, end))
        after = body.op("Where", inside, longer, before)
    else:
        after = body.op("StringConcat", before, part)
    graph = body.graph([body.op("Identity", going), _text(after, [None] * rank)])
    return _text(build.op("Loop", turns, None, empty, body=graph), dims)


def _text(value: ir.Value, dims: Any) -> ir.Value:
    return typed(value, ir.DataType.STRING, dims)


def _constant(build: Builder, text: str) -> ir.Value:
    return build.constant(np.array(text, object), ir.DataType.STRING)
