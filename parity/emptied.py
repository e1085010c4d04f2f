"""Inputs for which a model multiplies nothing: onnxruntime (1.31) may divide by zero there, and ends the process."""

from __future__ import annotations

import functools

import onnx_ir

from entrepot.ir.errors import InputError
from entrepot.ir.model import Model
from entrepot.ir.typing.formula import Formula
from entrepot.parity.feeds import Feeds, bind, holds_nothing

_PRODUCTS = frozenset({"Attention", "Einsum", "Gemm", "MatMul"})


class Emptied:
    """Tells inputs that are empty, or that empty an operand of a product, as far as the shapes in a model say.

    What else is done with nothing, onnxruntime is asked about: the mean of nothing is NaN, and it says 0.

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
        """The sizes of operands of products that are computed from those of inputs."""
        nodes = onnx_ir.traversal.RecursiveGraphIterator(self._model.ir.graph)
        operands = (value for node in nodes if node.op_type in _PRODUCTS for value in node.inputs)
        shapes = (value.shape for value in operands if value is not None and value.shape is not None)
        texts = {str(dim.value) for shape in shapes for dim in shape if isinstance(dim, onnx_ir.SymbolicDim)}
        found = (Formula.of(text) for text in sorted(texts) if not text.isidentifier())
        return [formula for formula in found if formula is not None]
