"""onnxruntime as a provider: whole models, or parts, brought to an opset that it loads."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.ir.errors import EntrepotError, UnsupportedOpError
from entrepot.ir.model import Model
from entrepot.ir.opset.convert import convert_opset
from entrepot.ir.typing.plain import Type
from entrepot.runtime.device import HOST, Array
from entrepot.runtime.planning.lower import inferred_types
from entrepot.runtime.planning.order import reads
from entrepot.runtime.providers import Compiled, Setting
from entrepot.runtime.providers.onnxruntime.engine import Engine, RefusedError
from entrepot.runtime.providers.onnxruntime.extract import extract
from entrepot.runtime.providers.onnxruntime.weights import is_passing

OPSET = 26
"""The newest ai.onnx version that onnxruntime 1.31 loads; newer ones are development versions to it."""


class OnnxRuntimeProvider:
    """Hands graphs to onnxruntime."""

    name = "onnxruntime"
    device = HOST

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._whole: Engine | str | None = None
        self._single: dict[ir.Node, str] = {}
        self._types: dict[ir.Value, Type] | None = None

    @staticmethod
    def available() -> str:
        """Empty where a module of that name is installed, from whichever of its builds."""
        try:
            import onnxruntime  # noqa: F401 - whether it is there, and loads, is all that is asked
        except ImportError as error:
            return f"needs the onnxruntime package: {error}; pip install 'entrepot[onnxruntime]'"
        return ""

    def place(self, constant: np.ndarray[Any, Any]) -> Array:
        """The constant itself; onnxruntime keeps its own copies of what a part holds."""
        return constant

    def supports(self, node: ir.Node) -> str:
        """Empty, or why onnxruntime does not run it; the whole model is tried first, then the node alone."""
        if not isinstance(self._whole_model(), str):
            return ""
        if node not in self._single:
            view = _alone(node)
            try:
                self._engine(self._part(view), view)
                self._single[node] = ""
            except (RefusedError, EntrepotError) as error:
                self._single[node] = str(error).splitlines()[0]
        return self._single[node]

    def compile(self, part: ir.GraphView) -> Compiled:
        """An onnxruntime session over the part; over the model as it came where the part is all of it.

        Raises:
            UnsupportedOpError: onnxruntime refuses the part.
        """
        whole = self._whole_model()
        if isinstance(whole, Engine) and whole.fits(part):
            return Compiled(whole.run)
        try:
            return Compiled(self._engine(self._part(part), part).run)
        except RefusedError as error:
            raise UnsupportedOpError(f"onnxruntime refuses this part: {error}") from error

    def _part(self, view: ir.GraphView) -> Model:
        if self._types is None:
            self._types = inferred_types(self._setting.hub.ir)
        return extract(self._setting.hub.ir, view, self._types)

    def _whole_model(self) -> Engine | str:
        if self._whole is None:
            graph = self._setting.hub.ir.graph
            try:
                self._whole = self._engine(self._setting.original, graph)
            except (RefusedError, EntrepotError) as error:
                self._whole = str(error)
        return self._whole

    def _engine(self, model: Model, graph: ir.Graph | ir.GraphView) -> Engine:
        names = [value.name or "" for value in graph.inputs if value.name not in graph.initializers]
        outputs = [value.name or "" for value in graph.outputs]
        return Engine(_loadable(model), names, outputs, self._setting.threads, frugal=is_passing(model))


def _loadable(model: Model) -> Model:
    return model if model.opset <= OPSET else convert_opset(model, OPSET)


def _alone(node: ir.Node) -> ir.GraphView:
    made = set(node.outputs)
    taken = dict.fromkeys(value for value in reads(node) if value not in made and value.graph is node.graph)
    known = [value for value in taken if value.is_initializer() and value.const_value is not None]
    makers = [value.producer() for value in taken]
    constants = [maker for maker in dict.fromkeys(makers) if maker is not None and maker.op_type == "Constant"]
    inputs = [value for value in taken if value not in known and value.producer() not in constants]
    return ir.GraphView(inputs, [v for v in node.outputs if v.name], nodes=[*constants, node], initializers=known)
