"""The body of a loop that takes the most likely token, or draws one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import Builder, typed
from entrepot.exporters.transformers.in_graph.asked import Asked, adjusted, among
from entrepot.exporters.transformers.in_graph.prompt import begun
from entrepot.exporters.transformers.in_graph.step import Decoder


@dataclass(frozen=True)
class Greedy:
    """Rows that go on until each has ended.

    Attributes:
        decoder: What scores tokens.
        asked: What the caller says, as values of the outer graph.
    """

    decoder: Decoder
    asked: Asked

    def __call__(self, build: Builder, prompt: ir.Value, mask: ir.Value) -> ir.Value:
        """Write the loop; returns the new tokens, ``(rows, new)``."""
        rows = build.op("Shape", prompt, start=0, end=1)
        live = build.op("Expand", np.array(True), rows)
        start = begun(build, self.decoder, prompt, mask)
        decoder = replace(self.decoder, first=start.scores)
        before = [start.tokens, mask, live, *self._history(prompt), *start.states]
        body = build.body("token")
        results = build.op(
            "Loop",
            self.asked.most,
            np.array(True),
            *before,
            outputs=len(before) + 1,
            body=self._body(body, before, decoder),
        )
        for result, value in zip(results, [*before, prompt], strict=True):
            result.type = value.type
        return build.op("Transpose", results[-1], perm=[1, 0])

    def _history(self, prompt: ir.Value) -> list[ir.Value]:
        """All tokens so far, where scores depend on them or the decoder takes them."""
        return [prompt] if self.asked.looks_back or not self.decoder.manifest.states else []

    def _body(self, body: Builder, before: list[ir.Value], decoder: Decoder) -> ir.Graph:
        turn, _ = body.input("turn", np.int64, []), body.input("going", np.bool_, [])
        inside = [body.input(f"before_{at}", value.dtype, None) for at, value in enumerate(before)]
        tokens, mask, live, *rest = inside
        history, states = (rest[:1], rest[1:]) if self._history(tokens) else ([], rest)
        scores, after = decoder(body, turn, tokens if decoder.manifest.states else history[0], mask, states)
        scores = adjusted(body, self.asked, scores, turn, history[0] if self.asked.looks_back else None, mask)
        draw = self.asked.draw
        best = body.op("ArgMax", scores, axis=1, keepdims=0) if draw is None else draw(body, scores, turn)
        token = typed(body.op("Where", live, best, self.asked.pad), np.int64, None)
        going = body.op("And", live, body.op("Not", among(body, token, self.asked.ends)))
        column = body.op("Unsqueeze", token, np.array([1]))
        grown = body.op("Concat", mask, body.op("Expand", np.array(1, np.int64), body.op("Shape", column)), axis=1)
        longer = [body.op("Concat", history[0], column, axis=1)] if history else []
        more = body.cast(body.op("ReduceMax", body.cast(going, np.int32), keepdims=0), np.bool_)
        return body.graph([more, column, grown, going, *longer, *after, token])
