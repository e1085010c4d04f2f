"""What a loop begins with: nothing, what a graph of its own made of the prompt, or what its tokens left one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import Builder, typed
from entrepot.exporters.transformers.in_graph.step import Decoder, with_room
from entrepot.runtime.generation.manifest import State


@dataclass(frozen=True)
class Begun:
    """What the first turn of a loop is given.

    Attributes:
        tokens: The new tokens, ``(rows, new)``.
        states: What the decoder has of those before them.
        scores: Those of the first token to choose, where they are known already.
    """

    tokens: ir.Value
    states: Sequence[ir.Value]
    scores: ir.Value | None = None

    def repeated(self, build: Builder, rows: ir.Value, states: Sequence[State]) -> Begun:
        """The same for rows, each as often as its place is named."""
        more = [_taken(build, value, rows, state.batch) for value, state in zip(self.states, states, strict=True)]
        scores = None if self.scores is None else _taken(build, self.scores, rows, 0)
        return Begun(_taken(build, self.tokens, rows, 0), more, scores)


def begun(build: Builder, decoder: Decoder, prompt: ir.Value, mask: ir.Value) -> Begun:
    """Write what comes before the loop."""
    if decoder.prefill is not None:
        manifest = decoder.manifest
        growing = replace(manifest, capacity=0, past_length="")
        scores, states = replace(decoder, model=decoder.prefill, manifest=growing).run(build, prompt, mask, ())
        if manifest.capacity:
            pairs = zip(manifest.states, states, strict=True)
            states = [with_room(build, value, state.shape) for state, value in pairs]
        return Begun(prompt, states, scores)
    empty = decoder.empty(build, build.op("Shape", prompt, start=0, end=1))
    return _one_by_one(build, decoder, prompt, mask, empty) if decoder.manifest.step else Begun(prompt, empty)


def _one_by_one(build: Builder, decoder: Decoder, prompt: ir.Value, mask: ir.Value, empty: Sequence[ir.Value]) -> Begun:
    """All tokens of the prompt but the last, which the first turn takes."""
    body = build.body("token_of_prompt")
    turn, going = body.input("turn", np.int64, []), body.input("going", np.bool_, [])
    inside = [body.input(f"before_{at}", value.dtype, None) for at, value in enumerate(empty)]
    ends = body.op("Reshape", body.op("Add", turn, 1), np.array([1]))
    column = body.op("Slice", prompt, body.op("Sub", ends, 1), ends, np.array([1]))
    so_far = body.op("Slice", mask, np.array([0]), ends, np.array([1]))
    _, after = decoder.run(body, typed(column, np.int64, None), typed(so_far, np.int64, None), inside)
    graph = body.graph([typed(body.op("Identity", going), np.bool_, []), *after])
    count = build.op("Sub", build.op("Squeeze", build.op("Shape", prompt, start=1, end=2)), 1)
    states = build.op("Loop", count, np.array(True), *empty, outputs=len(empty), body=graph)
    states = states if isinstance(states, tuple) else (states,)
    for state, value in zip(states, empty, strict=True):
        state.type = value.type
    last = build.op("Gather", prompt, np.array([-1]), axis=1)
    return Begun(typed(last, np.int64, None), states)


def _taken(build: Builder, value: ir.Value, rows: ir.Value, axis: int) -> ir.Value:
    return typed(build.op("Gather", value, rows, axis=axis), value.dtype or ir.DataType.FLOAT, None)
