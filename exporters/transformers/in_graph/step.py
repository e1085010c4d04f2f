"""One call of a decoder inside of a graph: what it is given, and what it leaves for the next one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import Builder, typed
from entrepot.ir.model import Model
from entrepot.runtime.generation.manifest import Manifest, State


@dataclass(frozen=True)
class Decoder:
    """The decoder of a package.

    Attributes:
        model: Its graph.
        manifest: How it is called.
        constants: What it is given at every step, by name: values of the outer graph.
        prefill: The graph of the prompt, if it has one of its own.
        first: The scores of the first token to choose, where the prompt went through that.
    """

    model: Model
    manifest: Manifest
    constants: Mapping[str, ir.Value]
    prefill: Model | None = None
    first: ir.Value | None = None

    def __call__(
        self, build: Builder, turn: ir.Value, tokens: ir.Value, mask: ir.Value, states: Sequence[ir.Value]
    ) -> tuple[ir.Value, list[ir.Value]]:
        """What a turn of the loop needs of it.

        Args:
            build: Where.
            turn: Which turn it is.
            tokens: The new ones, ``(rows, new)``; all of them for a decoder without a state.
            mask: Which of all tokens count.
            states: What the last call left.

        Returns:
            The scores of the next token, ``(rows, vocabulary)`` in float32, and what the next call needs.
        """
        if self.first is None:
            return self.run(build, tokens, mask, states)
        known, later = build.body("prompt"), build.body("step")
        scores, after = self.run(later, tokens, mask, states)
        results = build.op(
            "If",
            build.op("Equal", turn, 0),
            outputs=1 + len(after),
            then_branch=known.graph([self.first, *states]),
            else_branch=later.graph([scores, *after]),
        )
        for result, value in zip(results, [scores, *after], strict=True):
            result.type = value.type
        return results[0], list(results[1:])

    def run(
        self, build: Builder, tokens: ir.Value, mask: ir.Value, states: Sequence[ir.Value]
    ) -> tuple[ir.Value, list[ir.Value]]:
        """Run it on tokens; arguments and results are those of a turn."""
        manifest = self.manifest
        new = build.op("Neg", build.op("Shape", tokens, start=1, end=2))
        given = {**self.constants, manifest.tokens: tokens}
        if manifest.mask:
            whole = manifest.mask_of == "all"
            seen = with_room(build, mask, (-1, manifest.capacity)) if whole else _last(build, mask, new)
            given[manifest.mask] = self._as(build, manifest.mask, seen)
        if manifest.past_length:
            given[manifest.past_length] = build.op("Add", build.op("Shape", mask, start=1, end=2), new)
        if manifest.positions:
            counted = build.op("Sub", build.op("CumSum", mask, np.array(1, np.int64)), 1)
            given[manifest.positions] = _last(build, build.op("Max", counted, np.array(0, np.int64)), new)
        if manifest.first_scored:
            given[manifest.first_scored] = build.constant([-1], np.int64)
        given |= {state.past: value for state, value in zip(manifest.states, states, strict=False)}
        results = build.splice(self.model.ir, given)
        last = build.op("Gather", results[manifest.logits], np.array(-1, np.int64), axis=1)
        after = [results[each.present] for each in manifest.states]
        if manifest.step and states:
            after = [self._left(build, mask, *each) for each in zip(manifest.states, states, after, strict=True)]
        return typed(build.cast(last, np.float32), np.float32, None), after

    def _left(self, build: Builder, mask: ir.Value, state: State, before: ir.Value, after: ir.Value) -> ir.Value:
        """A state after one token: padding leaves that of its row as it is."""
        if 0 in state.shape:
            return after
        last = build.op("Gather", mask, np.array(-1, np.int64), axis=1)
        counts = build.op("Reshape", last, np.array([-1 if size == -1 else 1 for size in state.shape]))
        kept = build.op("Where", build.cast(counts, np.bool_), after, before)
        return typed(kept, before.dtype or ir.DataType.FLOAT, None)

    def _as(self, build: Builder, name: str, value: ir.Value) -> ir.Value:
        spec = next(spec for spec in self.model.ir.graph.inputs if spec.name == name)
        return build.cast(value, spec.dtype or ir.DataType.INT64)

    def empty(self, build: Builder, rows: ir.Value) -> list[ir.Value]:
        """The states before the first step, for a number of rows, ``int64[1]``."""
        return [_empty(build, state, rows) for state in self.manifest.states]


def with_room(build: Builder, value: ir.Value, sizes: Sequence[int]) -> ir.Value:
    """A value with zeros behind it, up to the sizes that are above 0."""
    if not any(size > 0 for size in sizes):
        return value
    more = build.op("Max", build.op("Sub", np.array(sizes), build.op("Shape", value)), np.array(0))
    padded = build.op("Pad", value, build.op("Concat", np.zeros(len(sizes), np.int64), more, axis=0))
    return typed(padded, value.dtype or ir.DataType.INT64, None)


def _empty(build: Builder, state: State, rows: ir.Value) -> ir.Value:
    sizes: list[Any] = [rows if size == -1 else build.constant([size]) for size in state.shape]
    zero = ir.tensor(np.zeros(1, ir.DataType[_NAMES.get(state.dtype, state.dtype.upper())].numpy()))
    made = build.op("ConstantOfShape", build.op("Concat", *sizes, axis=0), value=zero)
    return typed(made, zero.dtype, None)


_NAMES = {"float32": "FLOAT", "float64": "DOUBLE"}


def _last(build: Builder, value: ir.Value, start: ir.Value) -> ir.Value:
    """What of the second axis begins at ``start``, counted from the end."""
    return build.op("Slice", value, start, np.array([np.iinfo(np.int64).max]), np.array([1]))
