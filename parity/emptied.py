"""Inputs that leave a product or a normalisation nothing to compute: onnxruntime (1.31) may end the process there."""

from __future__ import annotations

import functools

import onnx_ir

from entrepot.ir.errors import InputError
from entrepot.ir.model import Model
from entrepot.ir.typing.formula import Formula
from entrepot.parity.feeds import Feeds, bind, holds_nothing

_SUMS = {
    *("Attention", "BatchNormalization", "Conv", "ConvTranspose", "Einsum", "GRU", "Gemm", "GroupNormalization"),
    *("InstanceNormalization", "LSTM", "LayerNormalization", "LpNormalization", "MatMul", "RMSNormalization", "RNN"),
}
"""Products, convolutions, recurrences and normalisations, which go through their operands in blocks."""
_MOVES = {"Cast", "Flatten", "Identity", "Mul", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}
"""What comes of nothing there is nothing, and its shape may not be known."""


class Emptied:
    """Tells inputs that are empty, or that empty an operand of a product or a normalisation, as far as shapes say.

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
        """The sizes of such operands that are computed from those of inputs."""
        nodes = onnx_ir.traversal.RecursiveGraphIterator(self._model.ir.graph)
        operands = (_before(value) for node in nodes if node.op_type in _SUMS for value in node.inputs)
        shapes = (value.shape for value in operands if value is not None and value.shape is not None)
        texts = {str(dim.value) for shape in shapes for dim in shape if isinstance(dim, onnx_ir.SymbolicDim)}
        found = (Formula.of(text) for text in sorted(texts) if not text.isidentifier())
        return [formula for formula in found if formula is not None]


def _before(value: onnx_ir.Value | None) -> onnx_ir.Value | None:
    """An operand, or what it was before it was moved about, if its own shape is not known."""
    while value is not None and value.shape is None:
        node = value.producer()
        if node is None or node.op_type not in _MOVES:
            break
        value = node.inputs[0]
    return value
