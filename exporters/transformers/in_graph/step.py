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
    """

    model: Model
    manifest: Manifest
    constants: Mapping[str, ir.Value]

    def __call__(
        self, build: Builder, tokens: ir.Value, mask: ir.Value, states: Sequence[ir.Value]
    ) -> tuple[ir.Value, list[ir.Value]]:
        """Run it on tokens.

        Args:
            build: Where.
            tokens: The new ones, ``(rows, new)``; all of them for a decoder without a state.
            mask: Which of all tokens count.
            states: What the last call left.

        Returns:
            The scores of the next token, ``(rows, vocabulary)`` in float32, and what the next call needs.
        """
        manifest = self.manifest
        new = build.op("Neg", build.op("Shape", tokens, start=1, end=2))
        given = {**self.constants, manifest.tokens: tokens}
        if manifest.mask:
            whole = manifest.mask_of == "all"
            given[manifest.mask] = self._as(build, manifest.mask, mask if whole else _last(build, mask, new))
        if manifest.positions:
            counted = build.op("Sub", build.op("CumSum", mask, np.array(1, np.int64)), 1)
            given[manifest.positions] = _last(build, build.op("Max", counted, np.array(0, np.int64)), new)
        if manifest.first_scored:
            given[manifest.first_scored] = build.constant([-1], np.int64)
        given |= {state.past: value for state, value in zip(manifest.states, states, strict=True)}
        results = build.splice(self.model.ir, given)
        last = build.op("Gather", results[manifest.logits], np.array(-1, np.int64), axis=1)
        return typed(build.cast(last, np.float32), np.float32, None), [
            results[each.present] for each in manifest.states
        ]

    def _as(self, build: Builder, name: str, value: ir.Value) -> ir.Value:
        spec = next(spec for spec in self.model.ir.graph.inputs if spec.name == name)
        return build.cast(value, spec.dtype or ir.DataType.INT64)

    def empty(self, build: Builder, rows: ir.Value) -> list[ir.Value]:
        """The states before the first step, for a number of rows, ``int64[1]``."""
        return [_empty(build, state, rows) for state in self.manifest.states]


def _empty(build: Builder, state: State, rows: ir.Value) -> ir.Value:
    sizes: list[Any] = [rows if size == -1 else build.constant([size]) for size in state.shape]
    zero = ir.tensor(np.zeros(1, ir.DataType[_NAMES.get(state.dtype, state.dtype.upper())].numpy()))
    made = build.op("ConstantOfShape", build.op("Concat", *sizes, axis=0), value=zero)
    return typed(made, zero.dtype, None)


_NAMES = {"float32": "FLOAT", "float64": "DOUBLE"}


def _last(build: Builder, value: ir.Value, start: ir.Value) -> ir.Value:
    """What of the second axis begins at ``start``, counted from the end."""
    return build.op("Slice", value, start, np.array([np.iinfo(np.int64).max]), np.array([1]))
