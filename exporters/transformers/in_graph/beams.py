"""The body of a loop that follows several beams: ``runtime/generation/beams.py`` in operators."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import Builder, typed
from entrepot.exporters.transformers.in_graph.asked import Asked, adjusted, among
from entrepot.exporters.transformers.in_graph.prompt import begun
from entrepot.exporters.transformers.in_graph.step import Decoder
from entrepot.runtime.generation.manifest import Manifest

_WORST = np.float32(-1e9)
_FIRST = np.array([0])


@dataclass(frozen=True)
class Beams:
    """Sequences of new tokens, the best first.

    Attributes:
        tokens: ``(batch, beams, length)``.
        scores: ``(batch, beams)``.
        done: Which are finished, as 0 and 1.
        lengths: How many tokens each has.
    """

    tokens: ir.Value
    scores: ir.Value
    done: ir.Value
    lengths: ir.Value

    def chosen(self, build: Builder, places: ir.Value) -> Beams:
        """Some of them, by their places in each row."""
        at = build.op("Unsqueeze", places, np.array([2]))
        whole = build.op("Concat", build.op("Shape", places), build.op("Shape", self.tokens, start=2), axis=0)
        tokens = build.op("GatherElements", self.tokens, build.op("Expand", at, whole), axis=1)
        rest = (build.op("GatherElements", value, places, axis=1) for value in (self.scores, self.done, self.lengths))
        return Beams(typed(tokens, np.int64, None), *rest)

    @property
    def values(self) -> list[ir.Value]:
        """What a loop carries."""
        return [self.tokens, self.scores, self.done, self.lengths]


@dataclass(frozen=True)
class BeamLoop:
    """A search with some number of beams.

    Attributes:
        decoder: What scores tokens, for a row of each of the batch.
        asked: What the caller says.
        count: How many beams there are.
    """

    decoder: Decoder
    asked: Asked
    count: int

    @property
    def manifest(self) -> Manifest:
        """How the decoder is called."""
        return self.decoder.manifest

    def __call__(self, build: Builder, prompt: ir.Value, mask: ir.Value) -> ir.Value:
        """Write the loop; returns the new tokens of the best beams, ``(rows, new)``."""
        batch = build.op("Shape", prompt, start=0, end=1)
        every = build.op("Range", np.array(0, np.int64), build.op("Squeeze", batch), np.array(1, np.int64))
        column = build.op("Unsqueeze", every, np.array([1]))
        rows = build.op("Reshape", build.op("Expand", column, np.array([1, self.count])), np.array([-1]))
        needed = {value.name for value in self.decoder.model.ir.graph.inputs}
        constants = {name: value for name, value in self.decoder.constants.items() if name in needed}
        kept = {name: self._repeated(build, name, value, rows) for name, value in constants.items()}
        # the prompt is taken once for all beams of a row
        start = begun(build, self.decoder, prompt, mask).repeated(build, rows, self.manifest.states)
        decoder = Decoder(self.decoder.model, self.manifest, kept, first=start.scores)
        wide = [typed(build.op("Gather", value, rows), np.int64, None) for value in (prompt, mask)]
        beams = [*self._begun(build, batch, first=True).values, *self._begun(build, batch, first=False).values]
        hope = build.op("Expand", np.array(1, np.int32), build.op("Concat", batch, np.array([1]), axis=0))
        before = [start.tokens, wide[1], *beams, typed(hope, np.int32, None), wide[0], *start.states]
        starts = build.op("Mul", column, self.count)  # of the beams of each row among all rows
        graph = self._body(build.body("beam"), before, decoder, starts)
        results = build.op("Loop", self.asked.most, np.array(True), *before, outputs=len(before), body=graph)
        for result, value in zip(results, before, strict=True):
            result.type = value.type
        best = build.op("Gather", results[6], np.array(0, np.int64), axis=1)
        length = build.op("ReduceMax", build.op("Gather", results[9], _FIRST, axis=1), keepdims=0)
        return build.op("Slice", best, _FIRST, build.op("Unsqueeze", length, _FIRST), np.array([1]))

    def _repeated(self, build: Builder, name: str, value: ir.Value, rows: ir.Value) -> ir.Value:
        made = build.op("Gather", value, rows, axis=self.manifest.constants.get(name, 0))
        return typed(made, value.dtype or ir.DataType.FLOAT, None)

    def _begun(self, build: Builder, batch: ir.Value, *, first: bool) -> Beams:
        shape = build.op("Concat", batch, np.array([self.count]), axis=0)
        scores = np.full(self.count, _WORST)
        scores[0] = 0 if first else _WORST  # all beams are equal: one goes on
        none = build.op("Expand", np.array(0, np.int64), build.op("Concat", shape, np.array([0]), axis=0))
        return Beams(
            typed(none, np.int64, None),
            typed(build.op("Expand", scores, shape), np.float32, None),
            typed(build.op("Expand", np.array(0, np.int32), shape), np.int32, None),
            typed(build.op("Expand", np.array(0, np.int64), shape), np.int64, None),
        )

    def _body(self, body: Builder, before: list[ir.Value], decoder: Decoder, starts: ir.Value) -> ir.Graph:
        turn, _ = body.input("turn", np.int64, []), body.input("going", np.bool_, [])
        inside = [body.input(f"before_{at}", value.dtype, None) for at, value in enumerate(before)]
        tokens, mask, running, finished = *inside[:2], Beams(*inside[2:6]), Beams(*inside[6:10])
        hope, history, states = inside[10], inside[11], inside[12:]
        scores, after = decoder(body, turn, tokens if self.manifest.states else history, mask, states)
        scores = adjusted(body, self.asked, _log_softmax(body, scores), turn, history, mask)
        candidates, origins = self._best(body, scores, running)
        new = body.op("Gather", candidates.tokens, np.array(-1, np.int64), axis=2)
        length = body.op("Add", turn, 1)
        ends = body.op("Or", among(body, new, self.asked.ends), body.op("Equal", length, self.asked.most))
        finished = self._finish(body, finished, candidates, ends, hope, length)
        going = body.op("Where", ends, body.op("Add", candidates.scores, _WORST), candidates.scores)
        going = typed(going, np.float32, None)
        places = body.op("TopK", going, np.array([self.count]), outputs=2)[1]
        next_running = Beams(candidates.tokens, going, candidates.done, candidates.lengths).chosen(body, places)
        hope = self._hope(body, next_running, finished, hope, length)
        rows = body.op(
            "Reshape", body.op("Add", body.op("GatherElements", origins, places, axis=1), starts), np.array([-1])
        )
        column = body.op("Gather", next_running.tokens, np.array([-1]), axis=2)
        column = typed(body.op("Reshape", column, np.array([-1, 1])), np.int64, None)
        grown = body.op(
            "Concat",
            body.op("Gather", mask, rows),
            body.op("Expand", np.array(1, np.int64), body.op("Shape", column)),
            axis=1,
        )
        longer = body.op("Concat", body.op("Gather", history, rows), column, axis=1)
        moved = [
            typed(body.op("Gather", value, rows, axis=state.batch), value.dtype or ir.DataType.FLOAT, None)
            for state, value in zip(self.manifest.states, after, strict=True)
        ]
        more = self._goes_on(body, hope, finished, ends)
        return body.graph([more, column, grown, *next_running.values, *finished.values, hope, longer, *moved])

    def _best(self, body: Builder, scores: ir.Value, running: Beams) -> tuple[Beams, ir.Value]:
        """The best continuations of each row, and which beams they continue."""
        size = body.op("Shape", scores, start=1, end=2)
        ends = body.cast(body.op("GreaterOrEqual", self.asked.ends, 0), np.int64)
        needed = body.op("Add", body.op("ReduceSum", ends, keepdims=1), 1)
        wanted = body.op("Mul", body.op("Max", needed, np.array([2])), self.count)
        shaped = body.op("Reshape", scores, body.op("Concat", np.array([-1, self.count]), size, axis=0))
        total = body.op("Add", shaped, body.op("Unsqueeze", running.scores, np.array([2])))
        flat = body.op("Reshape", total, np.array([0, -1]))
        best, places = body.op("TopK", flat, wanted, outputs=2)
        origins, tokens = body.op("Div", places, size), body.op("Mod", places, size)
        candidates = running.chosen(body, origins)
        longer = body.op("Concat", candidates.tokens, body.op("Unsqueeze", tokens, np.array([2])), axis=2)
        lengths = body.op("Add", candidates.lengths, 1)
        return Beams(typed(longer, np.int64, None), typed(best, np.float32, None), candidates.done, lengths), origins

    def _finish(
        self, body: Builder, finished: Beams, candidates: Beams, ends: ir.Value, hope: ir.Value, length: ir.Value
    ) -> Beams:
        """Keep the best of those that were finished, and the candidates that end now and are among the best."""
        settings = self.asked.settings
        place = body.op(
            "Range", np.array(0, np.int64), body.op("Squeeze", body.op("Shape", ends, start=1)), np.array(1, np.int64)
        )
        now = body.op("And", ends, body.op("Less", place, self.count))
        scores = body.op("Div", candidates.scores, _power(body, length, settings.length_penalty))
        scores = body.op("Where", body.op("Not", now), body.op("Add", scores, _WORST), scores)
        hopeless = body.op("Not", body.cast(hope, np.bool_))
        if settings.early_stopping is True:
            full = body.cast(body.op("ReduceMin", finished.done, np.array([1]), keepdims=1), np.bool_)
            scores = body.op("Where", full, body.op("Add", scores, _WORST), scores)
        scores = body.op("Where", hopeless, body.op("Add", scores, _WORST), scores)
        shape = body.op("Concat", body.op("Shape", finished.scores), np.array([1]), axis=0)
        filler = body.op("Expand", self._filler(body), shape)
        padded = body.op("Concat", finished.tokens, filler, axis=2)
        merged = Beams(
            typed(body.op("Concat", padded, candidates.tokens, axis=1), np.int64, None),
            typed(body.op("Concat", finished.scores, scores, axis=1), np.float32, None),
            typed(body.op("Concat", finished.done, body.cast(now, np.int32), axis=1), np.int32, None),
            typed(body.op("Concat", finished.lengths, candidates.lengths, axis=1), np.int64, None),
        )
        return merged.chosen(body, body.op("TopK", merged.scores, np.array([self.count]), outputs=2)[1])

    def _filler(self, body: Builder) -> ir.Value:
        """What fills rows that have ended: what ends them where padding is token 0, as on the host."""
        first = body.op("Gather", self.asked.ends, np.array(0, np.int64))
        replaced = body.op("And", body.op("Equal", self.asked.pad, 0), body.op("GreaterOrEqual", first, 0))
        return body.op("Where", replaced, first, self.asked.pad)

    def _hope(self, body: Builder, running: Beams, finished: Beams, hope: ir.Value, length: ir.Value) -> ir.Value:
        """Whether what is running can still be better than what is finished, as far as a look at its scores says."""
        settings = self.asked.settings
        furthest = settings.early_stopping == "never" and settings.length_penalty > 0
        reached = self.asked.most if furthest else length
        first = body.op("Gather", running.scores, _FIRST, axis=1)
        best = body.op("Div", first, _power(body, reached, settings.length_penalty))
        least = body.op("ReduceMin", finished.scores, np.array([1]), keepdims=1)
        worst = body.op("Where", body.cast(finished.done, np.bool_), least, _WORST)
        better = body.cast(body.op("Greater", best, worst), np.int32)
        return typed(body.op("Mul", hope, body.op("ReduceMax", better, np.array([1]), keepdims=1)), np.int32, None)

    def _goes_on(self, body: Builder, hope: ir.Value, finished: Beams, ends: ir.Value) -> ir.Value:
        hopeful = body.op("ReduceMax", hope, keepdims=0)
        running = body.op("ReduceMax", body.cast(body.op("Not", ends), np.int32), keepdims=0)
        both = body.op("Mul", hopeful, running)
        if self.asked.settings.early_stopping is True:
            open_ = body.op("Sub", np.array(1, np.int32), body.op("ReduceMin", finished.done, keepdims=0))
            both = body.op("Mul", both, open_)
        return body.cast(both, np.bool_)


def _power(body: Builder, length: ir.Value, exponent: float) -> ir.Value:
    return body.op("Pow", body.cast(length, np.float32), np.array(exponent, np.float32))


def _log_softmax(body: Builder, scores: ir.Value) -> ir.Value:
    return typed(body.op("LogSoftmax", scores, axis=-1), np.float32, None)
