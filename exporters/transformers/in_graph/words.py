"""What scores owe to the tokens that occurred, in operators: ``Scorer`` of ``runtime/generation/scores.py``."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import Builder, typed
from entrepot.runtime.generation.readers import Words

NEVER = np.array(-np.inf, np.float32)
_NONE = -1
"""What stands before the first token, and is none."""


def penalised(build: Builder, scores: ir.Value, history: ir.Value, mask: ir.Value, penalty: ir.Value) -> ir.Value:
    """Divide the scores of tokens that occurred, or multiply those below zero."""
    last = build.op("Gather", history, np.array([-1]), axis=1)  # which occurred, in place of padding
    seen = build.op("Where", build.cast(mask, np.bool_), history, last)
    found = build.op("GatherElements", scores, seen, axis=1)
    below = build.op("Less", found, np.array(0, np.float32))
    changed = build.op("Where", below, build.op("Mul", found, penalty), build.op("Div", found, penalty))
    return build.op("ScatterElements", scores, seen, changed, axis=1)


def without_repeats(build: Builder, scores: ir.Value, history: ir.Value, size: int) -> ir.Value:
    """Forbid tokens that would complete a run of tokens which occurred."""
    tokens = _after(build, history, size)
    tail = [_column(build, tokens, place - size + 1) for place in range(size - 1)]
    same = [build.op("Equal", _window(build, tokens, at, size), each) for at, each in enumerate(tail)]
    return _forbidden(build, scores, _window(build, tokens, size - 1, size), same)


def without_words(build: Builder, scores: ir.Value, history: ir.Value, words: Words) -> ir.Value:
    """Forbid the last tokens of runs of at least two, after those before them."""
    for size in sorted({len(word) for word in words}):
        some = np.array([word for word in words if len(word) == size], np.int64)
        tokens = _after(build, history, size)
        tail = [_column(build, tokens, place - size + 1) for place in range(size - 1)]
        same = [build.op("Equal", each, some[:, at]) for at, each in enumerate(tail)]
        last = build.op("Expand", some[:, -1], build.op("Shape", same[0]))
        scores = _forbidden(build, scores, last, same)
    return scores


def _after(build: Builder, history: ir.Value, size: int) -> ir.Value:
    """Tokens, after so many that are none."""
    shape = build.op("Concat", build.op("Shape", history, end=1), np.array([size]), axis=0)
    return build.op("Concat", build.op("Expand", np.array(_NONE), shape), history, axis=1)


def _column(build: Builder, tokens: ir.Value, place: int) -> ir.Value:
    return build.op("Gather", tokens, np.array([place]), axis=1)


def _window(build: Builder, tokens: ir.Value, at: int, size: int) -> ir.Value:
    """The token at a place of every run of some size."""
    end = np.array([at - size + 1 or np.iinfo(np.int64).max])
    return build.op("Slice", tokens, np.array([at]), end, np.array([1]))


def _forbidden(build: Builder, scores: ir.Value, tokens: ir.Value, conditions: list[ir.Value]) -> ir.Value:
    """Forbid tokens of each row where conditions hold; the others go to a column of their own, which is left out."""
    size = build.op("Shape", scores, start=1, end=2)
    where = build.op("And", build.op("GreaterOrEqual", tokens, 0), build.op("Less", tokens, size))
    for condition in conditions:
        where = build.op("And", where, condition)
    places = build.op("Where", where, tokens, size)
    one = build.op("Concat", build.op("Shape", scores, end=1), np.array([1]), axis=0)
    wide = build.op("Concat", scores, build.op("Expand", NEVER, one), axis=1)
    marked = build.op("ScatterElements", wide, places, build.op("Expand", NEVER, build.op("Shape", places)), axis=1)
    return typed(build.op("Slice", marked, np.array([0]), size, np.array([1])), np.float32, None)
