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


def _replaced(build: Builder, texts: ir.Value, rank: int, gone: str, by: str) -> ir.Value:
    dims: Any = [None] * rank if texts.shape is None else list(texts.shape)
    parts, counts = build.op("StringSplit", texts, delimiter=gone, outputs=2)
    turns = build.op("Squeeze", build.shape(_text(parts, [*dims, None]), rank, rank + 1))
    empty = _text(build.op("Expand", _constant(build, ""), build.op("Shape", texts)), dims)
    body = build.body("join")
    at, going = body.input("at", np.int64, []), body.input("going", np.bool_, [])
    before = body.input("before", ir.DataType.STRING, [None] * rank)
    part = body.op("Gather", parts, at, axis=rank)  # an empty text where there are fewer
    if by:
        between = body.op("Where", body.op("Equal", at, 0), _constant(body, ""), _constant(body, by))
        longer = body.op("StringConcat", body.op("StringConcat", before, between), part)
        after = body.op("Where", body.op("Less", at, counts), longer, before)
    else:
        after = body.op("StringConcat", before, part)
    graph = body.graph([body.op("Identity", going), _text(after, [None] * rank)])
    return _text(build.op("Loop", turns, None, empty, body=graph), dims)


def _text(value: ir.Value, dims: Any) -> ir.Value:
    return typed(value, ir.DataType.STRING, dims)


def _constant(build: Builder, text: str) -> ir.Value:
    return build.constant(np.array(text, object), ir.DataType.STRING)
