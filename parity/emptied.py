"""Inputs for which something in a model is empty: onnxruntime (1.31) may end the process on such, and says nothing."""

from __future__ import annotations

import functools

import onnx_ir

from entrepot.ir.errors import InputError
from entrepot.ir.model import Model
from entrepot.ir.typing.formula import Formula
from entrepot.parity.feeds import Feeds, bind, holds_nothing


class Emptied:
    """Tells inputs that are empty, or that empty something inside, as far as the shapes in a model say.

    Args:
        model: Whose inputs they are.
    """

    def __init__(self, model: Model) -> None:
        self._model = model

    def by(self, feeds: Feeds) -> bool:
        """Whether some inputs are such."""
        if any(map(holds_nothing, feeds.values())):
            return True
        if not self._formulas:
            return False
        try:
            sizes = bind(self._model, feeds)
        except InputError:  # they are refused before anything is computed
            return False
        return any(formula.size(sizes) == 0 for formula in self._formulas)

    @functools.cached_property
    def _formulas(self) -> list[Formula]:
        """The sizes inside that are computed from those of inputs."""
        values = (
            value for node in onnx_ir.traversal.RecursiveGraphIterator(self._model.ir.graph) for value in node.outputs
        )
        shapes = (value.shape for value in values if value.shape is not None)
        texts = {str(dim.value) for shape in shapes for dim in shape if isinstance(dim, onnx_ir.SymbolicDim)}
        found = (Formula.of(text) for text in sorted(texts) if not text.isidentifier())
        return [formula for formula in found if formula is not None]
