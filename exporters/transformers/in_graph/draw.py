"""Tokens that are drawn, in operators: ``warped`` and ``drawn`` of ``runtime/generation/warping.py``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import Builder, typed
from entrepot.runtime.generation.draws import PRIME, ROUNDS
from entrepot.runtime.generation.settings import Settings

_NEVER = np.array(-np.inf, np.float32)


@dataclass(frozen=True)
class Draw:
    """How tokens are drawn, as inputs of the graph.

    Attributes:
        temperature: What scores are divided by.
        top_k: How many of the most likely tokens may be drawn; 0 for all.
        top_p: The least probability that those have together.
        seed: Where random numbers start.
    """

    temperature: ir.Value
    top_k: ir.Value
    top_p: ir.Value
    seed: ir.Value

    def __call__(self, build: Builder, scores: ir.Value, turn: ir.Value) -> ir.Value:
        """A token for each row of scores, ``(rows, vocabulary)`` in float32."""
        scores = self._warped(build, scores)
        kept = build.op("Softmax", build.cast(scores, np.float64), axis=-1)
        total = build.op("CumSum", kept, np.array(1, np.int64))
        last = build.op("Gather", total, np.array([-1]), axis=1)
        rows = build.op("Squeeze", build.op("Shape", scores, start=0, end=1))
        every = build.op("Range", np.array(0, np.int64), rows, np.array(1, np.int64))
        uniform = build.op("Unsqueeze", self._uniform(build, turn, typed(every, np.int64, ["rows"])), np.array([1]))
        passed = build.op("Not", build.op("Greater", total, build.op("Mul", uniform, last)))
        return typed(build.op("ReduceSum", build.cast(passed, np.int64), np.array([1]), keepdims=0), np.int64, None)

    def _warped(self, build: Builder, scores: ir.Value) -> ir.Value:
        scores = build.op("Div", scores, self.temperature)
        size = build.op("Shape", scores, start=1, end=2)
        most = build.op("Where", build.op("Equal", self.top_k, 0), size, build.op("Min", self.top_k, size))
        likely, _ = build.op("TopK", scores, most, axis=1, outputs=2)
        before = build.op("CumSum", build.op("Softmax", likely, axis=-1), np.array(1, np.int64), exclusive=1)
        first = build.op("Equal", before, np.array(0, np.float32))  # the most likely one may always be drawn
        allowed = build.op("Or", first, build.op("Less", before, self.top_p))
        least = build.op("ReduceMin", build.op("Where", allowed, likely, np.array(np.inf, np.float32)), np.array([1]))
        return typed(build.op("Where", build.op("Less", scores, least), _NEVER, scores), np.float32, None)

    def _uniform(self, build: Builder, turn: ir.Value, rows: ir.Value) -> ir.Value:
        """A number between 0 and 1 for each row: ``runtime/generation/draws.py``."""
        seed = build.op("Mod", self.seed, PRIME), build.op("Div", self.seed, PRIME)
        keys: list[ir.Value | int] = [*seed, turn, rows, *(0,) * (len(ROUNDS) - 4)]
        state = build.op("Mul", rows, 0)
        for constant, key in zip(ROUNDS, keys, strict=True):
            mixed = build.op("Mod", build.op("Add", build.op("Add", state, key), constant), PRIME)
            squared = build.op("Mod", build.op("Mul", mixed, mixed), PRIME)
            fourth = build.op("Mod", build.op("Mul", squared, squared), PRIME)
            state = build.op("Mod", build.op("Mul", fourth, mixed), PRIME)
        half = build.op("Add", build.cast(state, np.float64), 0.5)
        return typed(build.op("Div", half, float(PRIME)), np.float64, None)


def draw_inputs(settings: Settings) -> dict[str, np.ndarray]:
    """The inputs of ``Draw`` with the settings for defaults."""
    return {
        "temperature": np.array(settings.temperature, np.float32),
        "top_k": np.array(settings.top_k, np.int64),
        "top_p": np.array(settings.top_p, np.float32),
        "seed": np.array(settings.seed or 0, np.int64),
    }
