"""A model made ready to run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from entrepot.ir.io.read import load
from entrepot.ir.limits import Limits
from entrepot.ir.opset import OPSET
from entrepot.runtime import types
from entrepot.runtime.feeds import arrays, check_names, input_spec
from entrepot.runtime.providers.cpu.provider import CpuProvider

if TYPE_CHECKING:
    from entrepot.ir.io.read import Source


class Session:
    """Runs a model.

    Args:
        model: A ``Model``, or anything ``load`` reads.
        providers: Who may run nodes, in order of preference.
        limits: Bounds on what the model may cost.
    """

    def __init__(self, model: Source, *, providers: Sequence[str] = ("cpu",), limits: Limits | None = None) -> None:
        self._model = load(model, limits=limits)
        self._hub = self._model if self._model.opset == OPSET else self._model.at_hub()
        self.providers = tuple(providers)
        graph = self._hub.ir.graph
        self._specs = [
            input_spec(value.name or "", types.of_value(value))
            for value in graph.inputs
            if value.name not in graph.initializers
        ]
        self._outputs = [value.name or "" for value in graph.outputs]
        self._code = CpuProvider(self._hub.ir, limits or Limits()).compile(graph)

    def run(self, feeds: Mapping[str, Any], outputs: Sequence[str] | None = None) -> dict[str, Any]:
        check_names(self._specs, feeds, frozenset())
        values = arrays(self._specs, feeds)
        with np.errstate(all="ignore"):
            results = self._code.function(*values)
        return {
            name: np.asarray(v) if not isinstance(v, list) and v is not None else v
            for name, v in zip(self._outputs, results)
        }

    def source(self) -> str:
        return self._code.source
